#include "galvani/data/sample.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <charconv>

#include "audio_file.h"
#include "galvani/base/error.h"
#include "galvani/data/image.h"

namespace galvani {
namespace {

// All that differs between kinds but the codec.
struct KindTraits {
  at::ScalarType dtype;
  std::int64_t low;
  std::int64_t high;
  std::int64_t full;
  std::size_t axes;  // of a sample
  const char* extension;
  const char* noun;
};

const KindTraits& traits(SampleKind kind) {
  static const KindTraits image{at::kByte, 0, 255, 255, 3, ".png", "images"};
  static const KindTraits audio{at::kShort, -32768, 32767, 32768, 2, ".wav", "clips"};
  return kind == SampleKind::image ? image : audio;
}

// Takes a number from 1 to a billion off the front of the text.
bool take_number(std::string_view& text, std::int64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 1 || number > 1'000'000'000) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

SampleType SampleType::image(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return {SampleKind::image, {channels, height, width}, 0};
}

SampleType SampleType::audio(std::int64_t channels, std::int64_t length, std::int64_t rate) {
  return {SampleKind::audio, {channels, length}, rate};
}

SampleType SampleType::of(const std::vector<std::int64_t>& shape, std::int64_t rate) {
  bool sound = shape.size() == traits(SampleKind::audio).axes;
  return {sound ? SampleKind::audio : SampleKind::image, shape, sound ? rate : 0};
}

SampleType SampleType::parse(const std::string& text, const std::string& what) {
  SampleType type;
  std::string_view rest = text;
  std::int64_t number = 0;
  bool good = take_number(rest, number);
  if (good) type.shape.push_back(number);
  while (good && !rest.empty() && rest[0] == ',') {
    rest.remove_prefix(1);
    good = take_number(rest, number);
    type.shape.push_back(number);
  }
  if (good && !rest.empty() && rest[0] == '@') {
    rest.remove_prefix(1);
    type.kind = SampleKind::audio;
    good = take_number(rest, type.rate);
  }
  if (!good || !rest.empty() || type.shape.size() != traits(type.kind).axes)
    bad_input("{}: '{}' is no shape of an input", what, printable(text));
  return type;
}

at::ScalarType SampleType::dtype() const {
  return traits(kind).dtype;
}
std::int64_t SampleType::low() const {
  return traits(kind).low;
}
std::int64_t SampleType::high() const {
  return traits(kind).high;
}
std::int64_t SampleType::full() const {
  return traits(kind).full;
}
const char* SampleType::extension() const {
  return traits(kind).extension;
}
const char* SampleType::noun() const {
  return traits(kind).noun;
}

std::size_t SampleType::values() const {
  std::size_t product = 1;
  for (std::int64_t size : shape) product *= static_cast<std::size_t>(size);
  return product;
}

std::size_t SampleType::bytes() const {
  return values() * at::elementSize(dtype());
}

std::string SampleType::str() const {
  std::string text = fmt::format("{}", fmt::join(shape, ","));
  return kind == SampleKind::audio ? fmt::format("{}@{}", text, rate) : text;
}

std::string SampleType::shape_text() const {
  std::string text = fmt::format("{}", fmt::join(shape, "x"));
  return kind == SampleKind::audio ? fmt::format("{} at {} Hz", text, rate) : text;
}

std::vector<std::int64_t> SampleType::batch(std::int64_t n) const {
  std::vector<std::int64_t> result = {n};
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

std::string SampleType::encode(const void* values, int level) const {
  if (kind == SampleKind::image)
    return encode_png(static_cast<const unsigned char*>(values), shape[0], shape[1], shape[2], level);
  return encode_wav(static_cast<const std::int16_t*>(values), shape[0], shape[1], rate);
}

std::string SampleType::encode(const at::Tensor& sample, int level) const {
  if (sample.scalar_type() != dtype() || sample.sizes() != at::IntArrayRef(shape))
    fail(ErrorCode::internal, "a sample of shape {} is not of type {}", sample.sizes(), str());
  return encode(sample.contiguous().data_ptr(), level);
}

at::Tensor SampleType::decode(std::string_view file, const std::string& what) const {
  Sample sample = decode_sample(file, what);
  if (sample.type != *this) bad_input("{}: is {}, not {}", what, sample.type.shape_text(), shape_text());
  return sample.values;
}

Sample decode_sample(std::string_view file, const std::string& what) {
  if (is_sound(file.substr(0, 12))) {
    Sound sound = decode_sound(file, what);
    SampleType type = SampleType::audio(sound.channels, sound.length, sound.rate);
    return {type, at::from_blob(sound.samples.data(), type.shape, at::kShort).clone()};
  }
  at::Tensor image = decode_image_tensor(file, what);
  return {SampleType::image(image.size(0), image.size(1), image.size(2)), image};
}

std::int64_t full_scale(std::int64_t axes) {
  bool image = axes == static_cast<std::int64_t>(traits(SampleKind::image).axes) + 1;
  return traits(image ? SampleKind::image : SampleKind::audio).full;
}

}  // namespace galvani
