// Vectors of words, the most frequent word first: from the text files of GloVe and fastText, or from a compact file of
// ours that holds float16.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace galvani {

class WordVectors {
 public:
  // Collects words one by one. A word that comes twice keeps its first vector.
  class Builder {
   public:
    explicit Builder(std::int64_t width);
    // REQUIRES width numbers.
    void add(std::string_view word, const float* vector);
    std::size_t size() const { return starts_.size(); }
    void save(const std::filesystem::path& path) const;
    std::unique_ptr<WordVectors> finish();

   private:
    friend class WordVectors;
    std::int64_t width_;
    std::string letters_;                // of all words
    std::vector<std::uint64_t> starts_;  // of each word in them
    std::vector<std::uint16_t> halves_;  // [words, width] float16
  };

  // Loads by content. `most`: only so many words of a text file; 0: all. Error(bad_input) for a file that is none of
  // these, is cut short or damaged.
  static std::unique_ptr<WordVectors> load(const std::filesystem::path& path, std::int64_t most = 0);

  std::int64_t width() const { return builder_.width_; }
  std::int64_t size() const { return static_cast<std::int64_t>(builder_.starts_.size()); }
  const std::string& sha256() const { return sha256_; }  // of the file
  std::string_view word(std::int64_t rank) const;
  // Its place in the order of frequency, from 0; -1: there is no such word.
  std::int64_t rank(std::string_view word) const;
  // Adds weight · vector to `sum`, which has width() numbers.
  void add_to(std::int64_t rank, double weight, double* sum) const;

 private:
  explicit WordVectors(Builder builder);

  Builder builder_;
  std::string sha256_;
  std::unordered_map<std::string_view, std::int64_t> rank_of_;
};

}  // namespace galvani
