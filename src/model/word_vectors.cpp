#include "galvani/model/word_vectors.h"

#include <c10/util/Half.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>

#include "galvani/base/archive.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr const char* kKind = "word vectors";
constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kWidest = 4096;
constexpr std::int64_t kMostWords = 20'000'000;
constexpr std::int64_t kLongestLine = 1 << 20;
constexpr std::int64_t kInterruptEvery = 1 << 14;  // lines

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  std::size_t start = 0;
  while (start < line.size()) {
    std::size_t end = std::min(line.find_first_of(" \t", start), line.size());
    if (end > start) fields.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return fields;
}

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Lines of a text file: "word number number ...". fastText puts a line "words width" in front. Words may hold blanks,
// so the numbers are counted from the end.
class TextReader {
 public:
  TextReader(const fs::path& path, std::int64_t most) : path_(path), most_(most), in_(path, std::ios::binary) {
    if (!in_) bad_input("{}: cannot be read", path.string());
  }

  WordVectors::Builder read() {
    std::string line;
    if (!next(line)) bad_input("{}: is empty", path_.string());
    std::vector<std::string_view> first = fields_of(line);
    std::int64_t words = 0;
    std::int64_t width = 0;
    bool header = first.size() == 2 && parse_number(first[0], words) && parse_number(first[1], width);
    if (!header) width = static_cast<std::int64_t>(first.size()) - 1;
    if (width < 2 || width > kWidest) no_vectors();
    if (!header) {
      std::vector<float> vector(static_cast<std::size_t>(width));
      if (!numbers(first, vector)) no_vectors();
    }
    WordVectors::Builder builder(width);
    if (!header) add(line, width, builder);
    while ((most_ == 0 || static_cast<std::int64_t>(builder.size()) < most_) && next(line)) {
      if (line_ % kInterruptEvery == 0) check_interrupt();
      add(line, width, builder);
    }
    if (header && most_ == 0 && line_ - 1 < words)
      bad_input("{}: is cut short: it says {} words and has {} lines of them", path_.string(), words, line_ - 1);
    if (builder.size() == 0) no_vectors();
    return builder;
  }

 private:
  [[noreturn]] void no_vectors() const {
    bad_input("{}: holds no word vectors (a line is a word and its numbers, as GloVe and fastText write them)",
              path_.string());
  }

  bool next(std::string& line) {
    if (!std::getline(in_, line)) return false;
    ++line_;
    if (static_cast<std::int64_t>(line.size()) > kLongestLine) no_vectors();
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    return true;
  }

  static bool numbers(const std::vector<std::string_view>& fields, std::vector<float>& vector) {
    std::size_t first = fields.size() - vector.size();
    for (std::size_t i = 0; i < vector.size(); ++i) {
      if (!parse_number(fields[first + i], vector[i]) || !std::isfinite(vector[i])) return false;
    }
    return true;
  }

  void add(const std::string& line, std::int64_t width, WordVectors::Builder& builder) {
    std::vector<std::string_view> fields = fields_of(line);
    std::vector<float> vector(static_cast<std::size_t>(width));
    // fastText has a line whose word is white space.
    if (fields.size() == vector.size() && (line[0] == ' ' || line[0] == '\t')) return;
    if (fields.size() <= vector.size() || !numbers(fields, vector))
      bad_input("{}: line {} is not a word and {} numbers", path_.string(), line_, width);
    std::string_view last = fields[fields.size() - vector.size() - 1];
    builder.add({fields[0].data(), static_cast<std::size_t>(last.data() + last.size() - fields[0].data())},
                vector.data());
    if (static_cast<std::int64_t>(builder.size()) > kMostWords)
      bad_input("{}: has more than {} words; say how many of them to read", path_.string(), kMostWords);
  }

  const fs::path& path_;
  std::int64_t most_;
  std::ifstream in_;
  std::int64_t line_ = 0;
};

bool is_sealed(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) bad_input("{}: cannot be read", path.string());
  std::string ours = sealed_bytes(kKind, kVersion, "").substr(0, 8);
  std::string head(ours.size(), '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == ours;
}

}  // namespace

WordVectors::Builder::Builder(std::int64_t width) : width_(width) {}

void WordVectors::Builder::add(std::string_view word, const float* vector) {
  starts_.push_back(letters_.size());
  letters_ += word;
  for (std::int64_t d = 0; d < width_; ++d) halves_.push_back(c10::Half(vector[d]).x);
}

void WordVectors::Builder::save(const fs::path& path) const {
  ArchiveWriter out;
  out.put(width_);
  out.put(letters_);
  out.put(starts_);
  out.put(halves_);
  write_sealed(path, kKind, kVersion, out.bytes());
}

std::unique_ptr<WordVectors> WordVectors::Builder::finish() {
  return std::unique_ptr<WordVectors>(new WordVectors(std::move(*this)));
}

WordVectors::WordVectors(Builder builder) : builder_(std::move(builder)) {
  rank_of_.reserve(builder_.starts_.size());
  for (std::int64_t i = 0; i < size(); ++i) rank_of_.emplace(word(i), i);
}

std::unique_ptr<WordVectors> WordVectors::load(const fs::path& path, std::int64_t most) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) bad_input("{}: is a folder, not a file of word vectors", path.string());
  std::unique_ptr<WordVectors> result;
  if (is_sealed(path)) {
    std::string payload = read_sealed(path, kKind, kVersion);
    ArchiveReader in(payload, path.string());
    auto width = in.get<std::int64_t>();
    if (width < 1 || width > kWidest) in.broken("has vectors of no sensible width");
    Builder builder(width);
    builder.letters_ = in.get_text(payload.size());
    builder.starts_ = in.get_vector<std::uint64_t>();
    builder.halves_ = in.get_vector<std::uint16_t>(builder.starts_.size() * static_cast<std::uint64_t>(width));
    in.expect_end();
    std::uint64_t last = 0;
    for (std::uint64_t start : builder.starts_) {
      if (start < last || start > builder.letters_.size()) in.broken("has words out of place");
      last = start;
    }
    result = builder.finish();
  } else {
    result = TextReader(path, most).read().finish();
  }
  result->sha256_ = sha256_file(path);
  return result;
}

std::string_view WordVectors::word(std::int64_t rank) const {
  auto i = static_cast<std::size_t>(rank);
  std::uint64_t end = i + 1 < builder_.starts_.size() ? builder_.starts_[i + 1] : builder_.letters_.size();
  return std::string_view(builder_.letters_).substr(builder_.starts_[i], end - builder_.starts_[i]);
}

std::int64_t WordVectors::rank(std::string_view word) const {
  auto found = rank_of_.find(word);
  return found == rank_of_.end() ? -1 : found->second;
}

void WordVectors::add_to(std::int64_t rank, double weight, double* sum) const {
  const std::uint16_t* row = builder_.halves_.data() + rank * builder_.width_;
  for (std::int64_t d = 0; d < builder_.width_; ++d)
    sum[d] += weight * static_cast<float>(c10::Half(row[d], c10::Half::from_bits()));
}

}  // namespace galvani
