// Sound files of any rate, length and number of channels made into what a model takes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sndfile.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <set>

#include "audio_file.h"
#include "fit_sound.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/picture.h"
#include "galvani/data/snr.h"
#include "galvani/data/view.h"
#include "speech.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;
constexpr double kTurn = 2 * 3.14159265358979323846;

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// A tone of 440 Hz, each channel half as loud as the one before.
void write_tone(const fs::path& path, int format, int channels, int rate, std::int64_t length) {
  fs::create_directories(path.parent_path());
  SF_INFO info{};
  info.format = format;
  info.channels = channels;
  info.samplerate = rate;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  ASSERT_NE(file, nullptr);
  std::vector<double> frames;
  for (std::int64_t i = 0; i < length; ++i) {
    for (int c = 0; c < channels; ++c)
      frames.push_back(std::ldexp(0.5 * std::sin(kTurn * 440 * static_cast<double>(i) / rate), -c));
  }
  sf_writef_double(file, frames.data(), length);
  sf_close(file);
}

at::Tensor tone_at(double rate, std::int64_t length, double loud) {
  return (at::arange(length, at::kDouble) * (kTurn * 440 / rate)).sin() * loud;
}

InputNeeds needs_of(std::int64_t channels, std::int64_t length, std::int64_t rate) {
  InputNeeds needs;
  needs.shape = {channels, length};
  needs.rate = rate;
  return needs;
}

TEST(SoundIntake, EveryKindOfFileBecomesTheModelsInput) {
  TemporaryFolder folder;
  struct Case {
    const char* name;
    int format;
    int channels;
    int rate;
  };
  for (const Case& c : {Case{"a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 16000},
                        Case{"b.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 2, 44100},
                        Case{"c.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 1, 8000},
                        Case{"d.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 2, 48000},
                        Case{"e.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 1, 22050}})
    write_tone(folder / "mixed" / c.name, c.format, c.channels, c.rate, 2 * c.rate);
  DataView view = OpenedData((folder / "mixed").string()).view(needs_of(1, 16000, 16000));
  EXPECT_EQ(view.type(), SampleType::audio(1, 16000, 16000));
  at::Tensor sounds = view.fetch(0, 5).to(at::kDouble);
  for (std::int64_t i = 0; i < 5; ++i) {
    // Two channels are averaged: one and a half of two.
    double loud = 16384 * (i == 1 || i == 3 ? 0.75 : 1.0);
    at::Tensor error = sounds[i][0] - tone_at(16000, 16000, loud);
    // The ends, where the resampling filter sees silence, are left out.
    EXPECT_LT(error.narrow(0, 200, 15600).abs().max().item<double>(), 40) << view.file(i);
  }
}

TEST(SoundIntake, EndsAreCutOrPaddedWithSilence) {
  TemporaryFolder folder;
  write_tone(folder / "x/long.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 8000, 3000);
  write_tone(folder / "x/short.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 8000, 500);
  DataView view = OpenedData((folder / "x").string()).view(needs_of(2, 1000, 0));
  EXPECT_EQ(view.type(), SampleType::audio(2, 1000, 8000));
  at::Tensor both = view.fetch(0, 2);
  EXPECT_TRUE(both.select(1, 0).equal(both.select(1, 1)));  // one channel is repeated
  EXPECT_EQ(both[1].narrow(1, 500, 500).abs().max().item<std::int64_t>(), 0);
  EXPECT_TRUE(both[0][0].narrow(0, 0, 500).equal(both[1][0].narrow(0, 0, 500)));
  EXPECT_NE(both[0].narrow(1, 500, 500).abs().max().item<std::int64_t>(), 0);
}

TEST(SoundIntake, OnlyWhatIsNeededOfALongFileIsRead) {
  TemporaryFolder folder;
  // Ten hours by the header; the file is sparse.
  std::int64_t length = std::int64_t{10} * 3600 * 16000;
  write_tone(folder / "x/day.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 16000, 16000);
  std::string file = read_file(folder / "x/day.wav");
  auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t k = 0; k < 4; ++k) file[at + k] = static_cast<char>(value >> (8 * k));
  };
  put(4, static_cast<std::uint32_t>(36 + 2 * length));
  put(40, static_cast<std::uint32_t>(2 * length));
  write_file(folder / "x/day.wav", file);
  EXPECT_NE(refusal_of([&] { look_at_sound(folder / "x/day.wav"); }).find("is cut off"), std::string::npos);
  fs::resize_file(folder / "x/day.wav", static_cast<std::uintmax_t>(44 + 2 * length));
  EXPECT_EQ(look_at_sound(folder / "x/day.wav").length, length);
  EXPECT_NE(refusal_of([&] { open_data((folder / "x").string()).fetch(0, 1); }).find("[length=...]"),
            std::string::npos);
  DataView view = OpenedData((folder / "x").string()).view(needs_of(1, 8000, 16000));
  EXPECT_EQ(view.fetch(0, 1)[0].abs().max().item<std::int64_t>(), 16384);
  EXPECT_EQ(open_data((folder / "x").string() + "[length=4000]").fetch(0, 1).size(2), 4000);
}

TEST(SoundIntake, BrokenFilesAreNamedAndMayBeLeftOut) {
  TemporaryFolder folder;
  write_tone(folder / "x/good.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 8000, 800);
  std::string good = read_file(folder / "x/good.wav");
  write_file(folder / "x/cut.wav", good.substr(0, 1000));
  write_file(folder / "x/empty.wav", "");
  write_file(folder / "x/text.wav", "this is no sound, although it is called one");
  std::string message = refusal_of([&] { OpenedData((folder / "x").string()).view(needs_of(1, 800, 8000)); });
  EXPECT_NE(message.find("3 of 4 files are broken"), std::string::npos) << message;
  EXPECT_NE(message.find("is cut off: its header says 1600 bytes of sound, but 956 are there"), std::string::npos)
      << message;
  InputNeeds needs = needs_of(1, 800, 8000);
  needs.intake.skip_broken = true;
  EXPECT_EQ(OpenedData((folder / "x").string()).view(needs).size(), 1);
  write_tone(folder / "x/cut.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1, 8000, 8000);
  std::string flac = read_file(folder / "x/cut.flac");
  write_file(folder / "x/cut.flac", flac.substr(0, flac.size() / 2));
  EXPECT_NE(refusal_of([&] { read_sound(folder / "x/cut.flac"); }).find("cut.flac: "), std::string::npos);
  EXPECT_EQ(OpenedData((folder / "x").string()).view(needs).size(), 1);
}

TEST(SoundIntake, SignalToNoise) {
  // 10·log10(100 / 1): 20 dB.
  std::vector<std::int16_t> signal = {6, 8}, changed = {6, 9};
  EXPECT_NEAR(signal_to_noise(signal.data(), changed.data(), 2), 20, 1e-12);
  EXPECT_TRUE(std::isinf(signal_to_noise(signal.data(), signal.data(), 2)));
  std::vector<std::int16_t> silence = {0, 0};
  EXPECT_LT(signal_to_noise(silence.data(), signal.data(), 2), -1e9);
}

// The lightest pixel of every row of the spectrogram of a tone is at the tone's frequency.
TEST(SoundIntake, APictureShowsTheTone) {
  SampleType type = SampleType::audio(1, 16000, 16000);
  at::Tensor tone =
      ((at::arange(16000, at::kDouble) * (kTurn * 4000 / 16000)).sin() * 20000).to(at::kShort).unsqueeze(0);
  at::Tensor picture = picture_of(tone, type);
  PictureSize size = picture_size(type);
  EXPECT_EQ(picture.sizes().vec(), (std::vector<std::int64_t>{3, size.height, size.width}));
  // 4000 of 8000 Hz: the middle of the lower part, which is 64 rows of 96.
  at::Tensor brightness = picture.to(at::kFloat).mean(0).narrow(0, 32, 64).mean(1);
  EXPECT_NEAR(brightness.argmax().item<std::int64_t>(), 32, 1);
}

TEST(Speech, SentencesOfTrainAndTestDiffer) {
  std::set<std::string> train;
  for (std::int64_t s = 0; s < kSpeakers; ++s) {
    for (std::int64_t i = 0; i < kSpeakersTrainEach; ++i) train.insert(spoken_sentence("train", s, i));
  }
  EXPECT_GT(train.size(), 1700U);
  for (std::int64_t s = 0; s < kSpeakers; ++s) {
    for (std::int64_t i = 0; i < kSpeakersTestEach; ++i) EXPECT_EQ(train.count(spoken_sentence("test", s, i)), 0U);
  }
  EXPECT_EQ(spoken_sentence("test", 3, 4), spoken_sentence("test", 3, 4));
  std::vector<std::string> names = speaker_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), static_cast<std::size_t>(kSpeakers));
}

}  // namespace
}  // namespace galvani
