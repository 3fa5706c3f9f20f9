#include "semantics/caption/captioner.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <sstream>

#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr const char* kCaptionerKind = "captioner";
constexpr std::uint32_t kCaptionerVersion = 1;
constexpr std::int64_t kMostWidth = 4096;
constexpr std::size_t kMostVocabulary = 100000;

std::vector<std::string> split_words(const std::string& sentence) {
  std::istringstream stream(sentence);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void put_row(ArchiveWriter& out, const at::Tensor& row) {
  at::Tensor flat = row.contiguous();
  out.put(std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()));
}

}  // namespace

CaptionWords::CaptionWords(std::vector<std::string> words) : words_(std::move(words)) {
  for (std::size_t i = 0; i < words_.size(); ++i) place_[words_[i]] = kFirstWord + static_cast<std::int64_t>(i);
}

CaptionWords CaptionWords::of(const std::vector<std::string>& sentences) {
  std::map<std::string, std::int64_t> counts;
  for (const std::string& sentence : sentences) {
    for (const std::string& word : split_words(sentence)) ++counts[word];
  }
  std::vector<std::pair<std::string, std::int64_t>> all(counts.begin(), counts.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  for (auto& [word, count] : all) words.push_back(word);
  if (words.size() > kMostVocabulary) words.resize(kMostVocabulary);
  return CaptionWords(std::move(words));
}

std::vector<std::int64_t> CaptionWords::encode(const std::string& sentence) const {
  std::vector<std::int64_t> numbers;
  for (const std::string& word : split_words(sentence)) {
    auto found = place_.find(word);
    if (found != place_.end() && static_cast<std::int64_t>(numbers.size()) < kMostWords)
      numbers.push_back(found->second);
  }
  return numbers;
}

std::string CaptionWords::decode(const std::vector<std::int64_t>& numbers) const {
  std::string result;
  for (std::int64_t number : numbers)
    result += (result.empty() ? "" : " ") + words_[static_cast<std::size_t>(number - kFirstWord)];
  return result;
}

at::Tensor Captioner::annotations(const at::Tensor& seen, const at::Tensor& masks) const {
  return (annotator.annotate(seen, masks) - mean) / scale;
}

void Captioner::save(const std::filesystem::path& path) const {
  ArchiveWriter out;
  out.put(trained_on);
  out.put(static_cast<std::uint64_t>(vocabulary.words().size()));
  for (const std::string& word : vocabulary.words()) out.put(word);
  for (std::int64_t n : {sizes.annotation, sizes.embedding, sizes.hidden, sizes.attention, sizes.language}) out.put(n);
  annotator.save(out);
  put_row(out, mean);
  put_row(out, scale);
  put_weights(out, decoder);
  put_weights(out, language);
  write_sealed(path, kCaptionerKind, kCaptionerVersion, out.bytes());
}

Captioner Captioner::load(const std::filesystem::path& path) {
  std::string payload = read_sealed(path, kCaptionerKind, kCaptionerVersion);
  ArchiveReader in(payload, path.string());
  Captioner result;
  result.trained_on = in.get_text();
  auto count = in.get<std::uint64_t>();
  if (count == 0 || count > kMostVocabulary) in.broken("has an impossible number of words");
  std::vector<std::string> words;
  for (std::uint64_t i = 0; i < count; ++i) words.push_back(in.get_text());
  result.vocabulary = CaptionWords(std::move(words));
  DecoderSizes& sizes = result.sizes;
  sizes.vocabulary = result.vocabulary.size();
  for (std::int64_t* n : {&sizes.annotation, &sizes.embedding, &sizes.hidden, &sizes.attention, &sizes.language}) {
    *n = in.get<std::int64_t>();
    if (*n < 1 || *n > kMostWidth) in.broken("has a layer of an impossible size");
  }
  if (sizes.annotation != result.annotator.width())
    in.broken("was made for annotations of another kind; train it anew");
  result.annotator.load(in);
  for (at::Tensor* row : {&result.mean, &result.scale})
    *row = at::tensor(in.get_vector<float>(static_cast<std::uint64_t>(sizes.annotation)));
  if (!result.mean.isfinite().all().item<bool>() || !(result.scale > 0).all().item<bool>())
    in.broken("holds a scale that is none");
  Rng unused(0);
  result.decoder = get_weights(in, CaptionDecoder::draw(sizes, unused));
  result.language = get_weights(in, LanguageModel::draw(sizes, unused));
  in.expect_end();
  return result;
}

}  // namespace galvani
