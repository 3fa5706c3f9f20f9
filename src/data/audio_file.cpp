#include "audio_file.h"

#include <sndfile.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "bounds.h"
#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::int64_t kMaxSamples = std::int64_t{1} << 28;  // of all channels: 97 minutes of 48 kHz
constexpr int kMaxChannels = 64;
constexpr std::int64_t kFramesAtOnce = 4096;

// What libsndfile reads and writes instead of a file.
struct Memory {
  std::string_view in;
  std::string out;
  std::int64_t at = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(in.empty() ? out.size() : in.size()); }
};

sf_count_t memory_size(void* user) {
  return static_cast<Memory*>(user)->size();
}

sf_count_t memory_seek(sf_count_t offset, int whence, void* user) {
  auto& memory = *static_cast<Memory*>(user);
  std::int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? memory.at : memory.size();
  if (from + offset < 0) return -1;
  return memory.at = from + offset;
}

sf_count_t memory_read(void* to, sf_count_t n, void* user) {
  auto& memory = *static_cast<Memory*>(user);
  n = std::clamp<std::int64_t>(memory.size() - memory.at, 0, n);
  if (n > 0) std::memcpy(to, memory.in.data() + memory.at, static_cast<std::size_t>(n));
  memory.at += n;
  return n;
}

sf_count_t memory_write(const void* from, sf_count_t n, void* user) {
  auto& memory = *static_cast<Memory*>(user);
  auto end = static_cast<std::size_t>(memory.at + n);
  if (memory.out.size() < end) memory.out.resize(end);
  std::memcpy(memory.out.data() + memory.at, from, static_cast<std::size_t>(n));
  memory.at += n;
  return n;
}

sf_count_t memory_tell(void* user) {
  return static_cast<Memory*>(user)->at;
}

using SoundFile = std::unique_ptr<SNDFILE, int (*)(SNDFILE*)>;

SoundFile open_memory(Memory& memory, int mode, SF_INFO& info) {
  SF_VIRTUAL_IO calls{memory_size, memory_seek, memory_read, memory_write, memory_tell};
  return {sf_open_virtual(&calls, mode, &info, &memory), sf_close};
}

bool has_floats(int format) {
  int kind = format & SF_FORMAT_SUBMASK;
  return kind == SF_FORMAT_FLOAT || kind == SF_FORMAT_DOUBLE;
}

// libsndfile would cut floating point to integers, or scale it by the loudest sample of the file.
sf_count_t read_frames(SNDFILE* file, const SF_INFO& info, std::vector<std::int16_t>& frames, sf_count_t count) {
  if (!has_floats(info.format)) return sf_readf_short(file, frames.data(), count);
  std::vector<float> values(frames.size());
  sf_count_t got = sf_readf_float(file, values.data(), count);
  std::transform(values.begin(), values.end(), frames.begin(), [](float value) {
    float scaled = std::isnan(value) ? 0.0F : std::clamp(value * 32768.0F, -32768.0F, 32767.0F);
    return static_cast<std::int16_t>(std::lrint(scaled));
  });
  return got;
}

bool has_extension(const std::filesystem::path& path, const std::vector<std::string>& extensions) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

}  // namespace

bool is_sound(std::string_view head) {
  std::string_view start = head.substr(0, 4);
  std::string_view form = head.size() >= 12 ? head.substr(8, 4) : "";
  return (start == "RIFF" && form == "WAVE") || (start == "FORM" && (form == "AIFF" || form == "AIFC")) ||
         start == "fLaC";
}

bool has_sound_extension(const std::filesystem::path& path) {
  return has_extension(path, {".wav", ".aif", ".aiff", ".flac"});
}

bool has_unread_sound_extension(const std::filesystem::path& path) {
  return has_extension(path, {".mp3", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".wma", ".amr"});
}

namespace {

// libsndfile takes what is there of a WAV or AIFF file for all of it, so we compare what the header claims with the
// size of the file. `read(offset, n)` gives up to n bytes.
template <class Read>
void check_whole(Read&& read, std::uint64_t size, const std::string& what) {
  constexpr std::uint64_t kUnknown = 0xffffffff;  // programs that write to a pipe cannot know
  constexpr int kMostChunks = 1000;
  std::string head = read(0, 12);
  bool little = head.substr(0, 4) == "RIFF";
  if (!little && head.substr(0, 4) != "FORM") return;
  std::uint64_t at = 12;
  for (int i = 0; i < kMostChunks && at + 8 <= size; ++i) {
    std::string chunk = read(at, 8);
    if (chunk.size() < 8) return;
    std::uint64_t bytes = 0;
    for (std::size_t k = 0; k < 4; ++k) bytes = bytes << 8 | static_cast<unsigned char>(chunk[little ? 7 - k : 4 + k]);
    std::string name = chunk.substr(0, 4);
    if (name == (little ? "data" : "SSND")) {
      if (bytes != kUnknown && at + 8 + bytes > size)
        bad_input("{}: is cut off: its header says {} bytes of sound, but {} are there", what, bytes, size - at - 8);
      return;
    }
    at += 8 + bytes + bytes % 2;
  }
}

void check_info(const SF_INFO& info, const std::string& what) {
  if (info.frames < 1) bad_input("{}: holds no sound", what);
  if (info.channels < 1 || info.channels > kMaxChannels)
    bad_input("{}: has {} channels, but 1 to {} are possible", what, info.channels, kMaxChannels);
  if (info.samplerate < 1) bad_input("{}: says {} samples a second", what, info.samplerate);
}

// The first `most` samples of an open file, 0: all.
Sound take_samples(SNDFILE* file, const SF_INFO& info, std::int64_t most, const std::string& what) {
  std::int64_t length = most > 0 ? std::min<std::int64_t>(most, info.frames) : info.frames;
  if (length > kMaxSamples / info.channels)
    bad_input("{}: is {} samples long, more than the {} million accepted; [length=...] takes the start of it", what,
              info.frames, kMaxSamples >> 20);
  require_memory(what, static_cast<std::uint64_t>(length * info.channels) * sizeof(std::int16_t));
  Sound sound{{info.channels, length, info.samplerate}, {}};
  sound.samples.resize(static_cast<std::size_t>(length * info.channels));
  std::vector<std::int16_t> frames(static_cast<std::size_t>(kFramesAtOnce * info.channels));
  for (std::int64_t done = 0; done < length;) {
    std::int64_t got = read_frames(file, info, frames, std::min<std::int64_t>(kFramesAtOnce, length - done));
    if (got < 1) bad_input("{}: ends after {} of its {} samples", what, done, info.frames);
    for (std::int64_t i = 0; i < got; ++i) {
      for (std::int64_t c = 0; c < sound.channels; ++c)
        sound.samples[static_cast<std::size_t>(c * length + done + i)] =
            frames[static_cast<std::size_t>(i * sound.channels + c)];
    }
    done += got;
  }
  return sound;
}

// libsndfile knows many more formats; decoders that nobody needs are not given hostile files.
void check_format(std::string_view head, const std::string& what) {
  if (head.empty()) bad_input("{}: is empty", what);
  if (!is_sound(head)) bad_input("{}: is not a WAV, AIFF or FLAC sound", what);
}

SoundFile open_file(const std::filesystem::path& path, SF_INFO& info) {
  std::string what = path.string();
  check_format(read_head(path, 12), what);
  std::ifstream stream(path, std::ios::binary);
  check_whole(
      [&](std::uint64_t offset, std::size_t n) {
        std::string bytes(n, '\0');
        stream.clear();
        stream.seekg(static_cast<std::streamoff>(offset));
        stream.read(bytes.data(), static_cast<std::streamsize>(n));
        bytes.resize(static_cast<std::size_t>(stream.gcount()));
        return bytes;
      },
      std::filesystem::file_size(path), what);
  SoundFile file(sf_open(path.c_str(), SFM_READ, &info), sf_close);
  if (file == nullptr) bad_input("{}: the sound file is damaged: {}", what, printable(sf_strerror(nullptr)));
  check_info(info, what);
  return file;
}

}  // namespace

SoundInfo look_at_sound(const std::filesystem::path& path) {
  SF_INFO info{};
  SoundFile file = open_file(path, info);
  return {info.channels, info.frames, info.samplerate};
}

Sound read_sound(const std::filesystem::path& path, std::int64_t most) {
  SF_INFO info{};
  SoundFile file = open_file(path, info);
  return take_samples(file.get(), info, most, path.string());
}

Sound decode_sound(std::string_view bytes, const std::string& what) {
  check_format(bytes.substr(0, 12), what);
  check_whole([&](std::uint64_t offset, std::size_t n) { return std::string(bytes.substr(offset, n)); }, bytes.size(),
              what);
  Memory memory{bytes, {}, 0};
  SF_INFO info{};
  SoundFile file = open_memory(memory, SFM_READ, info);
  if (file == nullptr) bad_input("{}: the sound file is damaged: {}", what, printable(sf_strerror(nullptr)));
  check_info(info, what);
  return take_samples(file.get(), info, 0, what);
}

std::string encode_wav(const std::int16_t* samples, std::int64_t channels, std::int64_t length, std::int64_t rate) {
  Memory memory;
  SF_INFO info{};
  info.samplerate = static_cast<int>(rate);
  info.channels = static_cast<int>(channels);
  info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  {
    SoundFile file = open_memory(memory, SFM_WRITE, info);
    if (file == nullptr) fail(ErrorCode::internal, "a WAV file cannot be made: {}", sf_strerror(nullptr));
    std::vector<std::int16_t> frames(static_cast<std::size_t>(channels * length));
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::int64_t c = 0; c < channels; ++c)
        frames[static_cast<std::size_t>(i * channels + c)] = samples[c * length + i];
    }
    if (sf_writef_short(file.get(), frames.data(), length) != length)
      fail(ErrorCode::internal, "a WAV file cannot be made: {}", sf_strerror(file.get()));
  }
  return std::move(memory.out);
}

}  // namespace galvani
