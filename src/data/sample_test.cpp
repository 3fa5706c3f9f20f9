// What an input is: every kind through its file and back, and refusals.
#include "galvani/data/sample.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "galvani/base/error.h"

namespace galvani {
namespace {

void expect_refused(const std::function<void()>& action, const std::string& message) {
  try {
    action();
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input) << e.what();
    EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
  }
}

void append(std::string& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
}

// A WAV file by the book: `format` 1 is integers, 3 floating point.
std::string wav(int format, int channels, int rate, int bits, const std::string& data) {
  std::string bytes = "RIFF";
  append(bytes, 36 + data.size(), 4);
  bytes += "WAVEfmt ";
  append(bytes, 16, 4);
  append(bytes, static_cast<std::uint64_t>(format), 2);
  append(bytes, static_cast<std::uint64_t>(channels), 2);
  append(bytes, static_cast<std::uint64_t>(rate), 4);
  append(bytes, static_cast<std::uint64_t>(rate * channels * bits / 8), 4);
  append(bytes, static_cast<std::uint64_t>(channels * bits / 8), 2);
  append(bytes, static_cast<std::uint64_t>(bits), 2);
  bytes += "data";
  append(bytes, data.size(), 4);
  return bytes + data;
}

TEST(SampleType, SaysWhatAnInputIs) {
  SampleType image = SampleType::image(3, 32, 24);
  EXPECT_EQ(image.dtype(), at::kByte);
  EXPECT_EQ(image.bytes(), 3U * 32 * 24);
  EXPECT_EQ(image.str(), "3,32,24");
  EXPECT_EQ(image.shape_text(), "3x32x24");
  SampleType sound = SampleType::audio(2, 4000, 8000);
  EXPECT_EQ(sound.dtype(), at::kShort);
  EXPECT_EQ(sound.bytes(), 2U * 4000 * 2);
  EXPECT_EQ(sound.str(), "2,4000@8000");
  EXPECT_EQ(sound.batch(7), (std::vector<std::int64_t>{7, 2, 4000}));
  for (const SampleType& type : {image, sound}) EXPECT_EQ(SampleType::parse(type.str(), "x"), type);
  for (const char* text : {"", "3", "3,32", "3,32,24,1", "3,32,0", "3,,24", "2,4000@", "2,4000@0", "2@8000",
                           "3,32,24@8", "3,32,24 ", "-3,32,24", "99999999999,1,1"})
    expect_refused([&] { SampleType::parse(text, "the store"); }, "the store: ");
}

TEST(SampleType, FilesComeBackTheSame) {
  for (std::int64_t channels : {1, 3}) {
    SampleType type = SampleType::image(channels, 5, 7);
    at::Tensor image = at::randint(0, 256, type.shape, at::kByte);
    for (int level : {-1, 1}) EXPECT_TRUE(type.decode(type.encode(image, level), "x").equal(image));
  }
  for (std::int64_t channels : {1, 2}) {
    SampleType type = SampleType::audio(channels, 9001, 16000);
    at::Tensor sound = at::randint(-32768, 32768, type.shape, at::kLong).to(at::kShort);
    std::string file = type.encode(sound);
    EXPECT_EQ(file.size(), 44 + type.bytes());
    EXPECT_EQ(file, type.encode(sound));
    EXPECT_TRUE(type.decode(file, "x").equal(sound));
  }
}

TEST(SampleType, RefusesWhatIsOfAnotherType) {
  SampleType type = SampleType::audio(1, 100, 8000);
  std::string file = type.encode(at::zeros({1, 100}, at::kShort));
  expect_refused([&] { SampleType::audio(1, 99, 8000).decode(file, "a.wav"); }, "is 1x100 at 8000 Hz, not 1x99");
  expect_refused([&] { SampleType::audio(1, 100, 16000).decode(file, "a.wav"); }, "8000 Hz, not 1x100 at 16000 Hz");
  expect_refused([&] { SampleType::image(1, 10, 10).decode(file, "a.wav"); },
                 "a.wav: is 1x100 at 8000 Hz, not 1x10x10");
}

TEST(Sound, OtherNumbersBecomeSixteenBits) {
  Sample bytes = decode_sample(wav(1, 1, 8000, 8, std::string("\x80\xff\x00\x81", 4)), "x");
  EXPECT_TRUE(bytes.values.equal(at::tensor({0, 32512, -32768, 256}, at::kShort).view({1, 4})));
  std::string wide;
  for (std::uint32_t value : {0U, 0x123456U, 0x7fffffU, 0x800000U}) append(wide, value, 3);
  EXPECT_TRUE(decode_sample(wav(1, 1, 8000, 24, wide), "x")
                  .values.equal(at::tensor({0, 0x1234, 0x7fff, -0x8000}, at::kShort).view({1, 4})));
  std::string floats;
  for (float value : {0.0F, 0.5F, 1.0F, -1.0F, 2.0F, -0.25F}) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    append(floats, bits, 4);
  }
  Sample stereo = decode_sample(wav(3, 2, 44100, 32, floats), "x");
  EXPECT_EQ(stereo.type, SampleType::audio(2, 3, 44100));
  // Frames of two become two rows; beyond 1 is clipped.
  EXPECT_TRUE(stereo.values.equal(at::tensor({0, 32767, 32767, 16384, -32768, -8192}, at::kShort).view({2, 3})));
}

TEST(Sound, DamagedFilesAreRefused) {
  std::string good = wav(1, 1, 8000, 16, std::string(2000, '\1'));
  EXPECT_EQ(decode_sample(good, "x").type, SampleType::audio(1, 1000, 8000));
  expect_refused([&] { decode_sample(good.substr(0, 30), "cut.wav"); }, "cut.wav: ");
  expect_refused([&] { decode_sample(wav(1, 1, 8000, 16, ""), "none.wav"); }, "none.wav: holds no sound");
  expect_refused([&] { decode_sample(wav(1, 0, 8000, 16, "12345678"), "odd.wav"); }, "odd.wav: ");
  expect_refused([&] { decode_sample(wav(99, 1, 8000, 16, "12345678"), "odd.wav"); }, "odd.wav: ");
  expect_refused([&] { decode_sample("hello, this is text", "text.wav"); }, "text.wav: is not a PNG");
}

}  // namespace
}  // namespace galvani
