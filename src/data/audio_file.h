// One sound file, read and written by libsndfile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace galvani {

struct SoundInfo {
  std::int64_t channels = 0;
  std::int64_t length = 0;
  std::int64_t rate = 0;
};

struct Sound : SoundInfo {
  std::vector<std::int16_t> samples;  // [channels, length]
};

bool is_sound(std::string_view head);  // the first 12 bytes of a WAV, AIFF or FLAC file
bool has_sound_extension(const std::filesystem::path& path);
bool has_unread_sound_extension(const std::filesystem::path& path);  // of formats that are not read, such as .mp3

// What the header says; little is read. Error(bad_input) naming the file for what is damaged, empty, shorter than its
// header says or of another format.
SoundInfo look_at_sound(const std::filesystem::path& path);

// The first `most` samples of every channel, 0: all; only those are ever in memory. 16-bit samples as they are, wider
// integers by their upper 16 bits, floating point rounded from -1..1. Error(bad_input) as above.
Sound read_sound(const std::filesystem::path& path, std::int64_t most = 0);
// The same for a file in memory.
Sound decode_sound(std::string_view bytes, const std::string& what);

// A WAV file of [channels, length] samples.
std::string encode_wav(const std::int16_t* samples, std::int64_t channels, std::int64_t length, std::int64_t rate);

}  // namespace galvani
