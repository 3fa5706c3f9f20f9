// A trained captioner, and its file.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "semantics/caption/annotation.h"
#include "semantics/caption/decoder.h"

namespace galvani {

// Words of sentences as numbers.
class CaptionWords {
 public:
  CaptionWords() = default;
  explicit CaptionWords(std::vector<std::string> words);
  // Those of all sentences, the most frequent first; of equal ones in the order of letters.
  static CaptionWords of(const std::vector<std::string>& sentences);

  std::int64_t size() const { return kFirstWord + static_cast<std::int64_t>(words_.size()); }
  const std::vector<std::string>& words() const { return words_; }
  // Words that are not in it are left out, and what is more than kMostWords.
  std::vector<std::int64_t> encode(const std::string& sentence) const;
  std::string decode(const std::vector<std::int64_t>& numbers) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::int64_t> place_;
};

struct Captioner {
  Annotator annotator;
  CaptionWords vocabulary;
  DecoderSizes sizes;
  at::Tensor mean, scale;  // [D]: annotations are brought to mean 0 and deviation 1
  Weights decoder;
  Weights language;
  std::string trained_on;  // for people

  // The pictures and masks of a neuron, [L, maps, positions] and [L, positions] → [L, D].
  at::Tensor annotations(const at::Tensor& seen, const at::Tensor& masks) const;

  void save(const std::filesystem::path& path) const;
  static Captioner load(const std::filesystem::path& path);
};

}  // namespace galvani
