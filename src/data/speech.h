// The data sets of speech: voices that programs make, and voices out of packages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "galvani/data/package.h"

namespace galvani {

// Thirty synthetic speakers: accents of English × voices of espeak-ng, and the voices of flite.
constexpr std::int64_t kSpeakersRate = 16000;
constexpr std::int64_t kSpeakersLength = 3 * kSpeakersRate;
constexpr std::int64_t kSpeakersTrainEach = 60;
constexpr std::int64_t kSpeakersTestEach = 20;
constexpr std::int64_t kSpeakers = 30;
constexpr std::int64_t kSpeakersTrain = kSpeakers * kSpeakersTrainEach;
constexpr std::int64_t kSpeakersTest = kSpeakers * kSpeakersTestEach;
std::vector<std::string> speaker_names();

// One sentence of a split; those of train and test are never the same.
std::string spoken_sentence(const std::string& split, std::int64_t speaker, std::int64_t number);

// Synthesises all of it into folders train/ and test/. Error(environment) that names the package if a program is
// missing.
void make_speakers(const CacheFolder& folder);

// The prompts that come with a telephone exchange, one voice a language.
constexpr std::int64_t kVoicesRate = 8000;
constexpr std::int64_t kVoicesLength = 2 * kVoicesRate;
constexpr std::int64_t kVoicesTrainEach = 160;
constexpr std::int64_t kVoicesTestEach = 40;
constexpr std::int64_t kVoices = 5;
constexpr std::int64_t kVoicesTrain = kVoices * kVoicesTrainEach;
constexpr std::int64_t kVoicesTest = kVoices * kVoicesTestEach;
std::vector<std::string> voice_names();

// Downloads Debian's packages and takes the prompts that last a second or more, cut or padded to two.
void make_voices(const CacheFolder& folder);

}  // namespace galvani
