// What one input is: an image of bytes or a sound of 16-bit samples. Shape, number type, scale and file format of every
// kind are said here and nowhere else.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace galvani {

enum class SampleKind {
  image,  // [C, H, W] uint8 0..255, RGB order where C is 3; a PNG file
  audio,  // [channels, length] int16 -32768..32767 at a rate; a WAV file
};

struct SampleType {
  SampleKind kind = SampleKind::image;
  std::vector<std::int64_t> shape;
  std::int64_t rate = 0;  // samples a second; 0 for images

  static SampleType image(std::int64_t channels, std::int64_t height, std::int64_t width);
  static SampleType audio(std::int64_t channels, std::int64_t length, std::int64_t rate);
  // Of [C, H, W] an image, of [channels, length] a sound at that rate.
  static SampleType of(const std::vector<std::int64_t>& shape, std::int64_t rate);
  // From str(); Error(bad_input) naming `what` for any other text.
  static SampleType parse(const std::string& text, const std::string& what);

  bool operator==(const SampleType& other) const {
    return kind == other.kind && shape == other.shape && rate == other.rate;
  }
  bool operator!=(const SampleType& other) const { return !(*this == other); }

  at::ScalarType dtype() const;
  std::int64_t low() const;                               // the least value
  std::int64_t high() const;                              // the greatest
  std::int64_t full() const;                              // what counts as 1: 255 for bytes, 32768 for 16-bit samples
  std::size_t values() const;                             // numbers in a sample
  std::size_t bytes() const;                              // that they take
  const char* extension() const;                          // of its files: ".png", ".wav"
  const char* noun() const;                               // for people, of several: "images", "clips"
  std::string str() const;                                // for files and records: "3,32,32", "1,16000@8000"
  std::string shape_text() const;                         // for people: "3x32x32", "1x16000 at 8000 Hz"
  std::vector<std::int64_t> batch(std::int64_t n) const;  // [n, ...shape]

  // The bytes of its file. `values` are values() numbers of dtype(). `level` of a PNG's compression 0..9; -1: the
  // encoder's choice. The same values give the same bytes.
  std::string encode(const void* values, int level = -1) const;
  std::string encode(const at::Tensor& sample, int level = -1) const;
  // [...shape]; Error(bad_input) naming `what` unless the bytes are a sample of exactly this type.
  at::Tensor decode(std::string_view file, const std::string& what) const;
};

struct Sample {
  SampleType type;
  at::Tensor values;  // [...type.shape]
};
// Whatever the bytes of a file hold: an 8-bit PNG, JPEG, BMP or PNM image; WAV, AIFF or FLAC sound, which is brought to
// 16 bits. Error(bad_input) naming `what` for anything else.
Sample decode_sample(std::string_view file, const std::string& what);

// What counts as 1 in values without a type, by the number of axes of [N, ...shape].
std::int64_t full_scale(std::int64_t axes);

}  // namespace galvani
