#include "speech.h"

#include <algorithm>
#include <array>

#include "audio_file.h"
#include "fit_sound.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/rng.h"
#include "package.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

struct Speaker {
  const char* name;   // of the class; in the order of the alphabet
  const char* voice;  // of espeak-ng, "accent+variant"; of flite without a plus
};

constexpr std::array<Speaker, kSpeakers> kAllSpeakers = {{
    {"awb", "awb"},
    {"caribbean-f1", "en-029+f1"},
    {"caribbean-f4", "en-029+f4"},
    {"caribbean-m2", "en-029+m2"},
    {"caribbean-m6", "en-029+m6"},
    {"england-f2", "en-gb+f2"},
    {"england-f5", "en-gb+f5"},
    {"england-m3", "en-gb+m3"},
    {"england-m7", "en-gb+m7"},
    {"kal", "kal16"},
    {"lancaster-f1", "en-gb-x-gbclan+f1"},
    {"lancaster-f3", "en-gb-x-gbclan+f3"},
    {"lancaster-m4", "en-gb-x-gbclan+m4"},
    {"lancaster-m5", "en-gb-x-gbclan+m5"},
    {"london-f2", "en-gb-x-rp+f2"},
    {"london-f4", "en-gb-x-rp+f4"},
    {"london-m2", "en-gb-x-rp+m2"},
    {"london-m6", "en-gb-x-rp+m6"},
    {"rms", "rms"},
    {"scotland-f3", "en-gb-scotland+f3"},
    {"scotland-f5", "en-gb-scotland+f5"},
    {"scotland-m3", "en-gb-scotland+m3"},
    {"scotland-m7", "en-gb-scotland+m7"},
    {"slt", "slt"},
    {"us-f1", "en-us+f1"},
    {"us-f4", "en-us+f4"},
    {"us-m4", "en-us+m4"},
    {"us-m5", "en-us+m5"},
    {"west-midlands-f2", "en-gb-x-gbcwmd+f2"},
    {"west-midlands-m3", "en-gb-x-gbcwmd+m3"},
}};

using Words = std::array<const char*, 12>;
constexpr Words kOpenings = {"The old miller",    "A tall stranger",  "My youngest sister", "The new teacher",
                             "Every second boat", "Our quiet doctor", "That little dog",    "The night train",
                             "A careful farmer",  "His best friend",  "The grey parrot",    "Some clever child"};
constexpr Words kVerbs = {"carries", "forgets", "paints", "watches", "borrows", "follows",
                          "repairs", "hides",   "counts", "brings",  "admires", "measures"};
constexpr Words kNumbers = {"two",   "three", "four", "five", "six",  "seven",
                            "eight", "nine",  "ten",  "many", "some", "few"};
constexpr Words kQualities = {"green",  "heavy", "broken", "wooden", "bright", "empty",
                              "narrow", "sweet", "loud",   "frozen", "yellow", "smooth"};
constexpr Words kThings = {"baskets", "ladders", "lamps",  "letters", "apples", "bridges",
                           "drums",   "windows", "stones", "coats",   "wheels", "tickets"};
constexpr Words kPlaces = {"behind the barn",   "near the harbour",   "under the stairs",    "across the valley",
                           "before breakfast",  "during the storm",   "beside the river",    "in the early morning",
                           "after the concert", "on a rainy evening", "outside the village", "without any reason"};

// How an utterance differs from the speaker's others.
struct Delivery {
  std::int64_t speed = 0;  // words a minute
  std::int64_t pitch = 0;  // of espeak-ng, 0..99
};

Rng utterance_stream(const std::string& split, std::int64_t speaker, std::int64_t number) {
  return Rng(0)
      .derive("speakers")
      .derive(split)
      .derive({static_cast<std::uint64_t>(speaker), static_cast<std::uint64_t>(number)});
}

Delivery delivery_of(const std::string& split, std::int64_t speaker, std::int64_t number) {
  Rng rng = utterance_stream(split, speaker, number).derive("delivery");
  return {rng.between(145, 190), rng.between(38, 62)};
}

// The command that speaks a sentence into a file.
std::vector<std::string> speak_command(const Speaker& speaker, const Delivery& delivery, const std::string& sentence,
                                       const std::string& file) {
  std::string voice = speaker.voice;
  if (voice.find('+') != std::string::npos)
    return {"espeak-ng", "-v", voice,   "-s", std::to_string(delivery.speed), "-p", std::to_string(delivery.pitch),
            "-w",        file, sentence};
  // flite has no words a minute; 165 are about its own speed, and 50 of espeak-ng's pitch about the voice's own.
  double stretch = 165.0 / static_cast<double>(delivery.speed);
  double shift = 1 + static_cast<double>(delivery.pitch - 50) / 200;
  return {"flite",
          "-voice",
          voice,
          "--setf",
          fmt::format("duration_stretch={:.3f}", stretch),
          "--setf",
          fmt::format("f0_shift={:.3f}", shift),
          "-t",
          sentence,
          "-o",
          file};
}

// A file as a clip of the data set.
void write_clip(const fs::path& from, const SampleType& type, const fs::path& to) {
  std::vector<std::int16_t> clip(type.values());
  fit_sound(read_sound(from, samples_needed(type, look_at_sound(from).rate)), type, clip.data(), from.string());
  write_file(to, type.encode(clip.data()));
}

fs::path clip_path(const CacheFolder& folder, const std::string& split, const std::string& name, std::int64_t number) {
  return folder.file(split) / name / fmt::format("{:03}.wav", number);
}

struct Voice {
  const char* name;  // of the class; in the order of the alphabet
  const char* package;
};
constexpr std::array<Voice, kVoices> kAllVoices = {{
    {"en-allison", "asterisk-core-sounds-en-wav"},
    {"es-allison", "asterisk-core-sounds-es-wav"},
    {"fr-june", "asterisk-core-sounds-fr-wav"},
    {"it-carlo", "asterisk-core-sounds-it-wav"},
    {"ru-ivrvoice", "asterisk-core-sounds-ru-wav"},
}};

// Whole prompts, not single digits and letters: those of the top folder that last a second or more.
std::vector<fs::path> prompts_in(const fs::path& sounds) {
  std::vector<fs::path> result;
  for (const fs::directory_entry& speaker : fs::directory_iterator(sounds)) {
    if (!speaker.is_directory() || speaker.is_symlink()) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(speaker.path())) {
      if (!file.is_regular_file() || !has_sound_extension(file.path())) continue;
      try {
        SoundInfo info = look_at_sound(file.path());
        if (info.length >= info.rate) result.push_back(file.path());
      } catch (const Error& e) {
        // Some words are empty in languages that do not have them.
        log::debug("{}", e.what());
      }
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

std::vector<std::string> speaker_names() {
  std::vector<std::string> names;
  for (const Speaker& speaker : kAllSpeakers) names.emplace_back(speaker.name);
  return names;
}

std::vector<std::string> voice_names() {
  std::vector<std::string> names;
  for (const Voice& voice : kAllVoices) names.emplace_back(voice.name);
  return names;
}

std::string spoken_sentence(const std::string& split, std::int64_t speaker, std::int64_t number) {
  Rng rng = utterance_stream(split, speaker, number);
  std::string sentence;
  std::size_t sum = split == "test" ? 1 : 0;
  for (const Words* words : {&kOpenings, &kVerbs, &kNumbers, &kQualities, &kThings}) {
    std::size_t choice = rng.below(words->size());
    sum += choice;
    sentence += std::string((*words)[choice]) + " ";
  }
  // The last word makes the sum of all choices even for one split and odd for the other, so none is in both.
  std::size_t last = rng.below(kPlaces.size() / 2) * 2 + sum % 2;
  return sentence + kPlaces[last] + ".";
}

void make_speakers(const CacheFolder& folder) {
  require_program("espeak-ng", "espeak-ng", "speakers");
  require_program("flite", "flite", "speakers");
  const SampleType type = SampleType::audio(1, kSpeakersLength, kSpeakersRate);
  Progress progress("speaking", kSpeakersTrain + kSpeakersTest, "sentences");
  for (const char* split : {"train", "test"}) {
    std::int64_t each = std::string(split) == "train" ? kSpeakersTrainEach : kSpeakersTestEach;
    for (std::int64_t s = 0; s < kSpeakers; ++s) {
      const Speaker& speaker = kAllSpeakers[static_cast<std::size_t>(s)];
      fs::create_directories(folder.file(split) / speaker.name);
      workers().run(each, [&](std::int64_t i, int) {
        check_interrupt();
        fs::path spoken = folder.scratch() / fmt::format("{}-{}-{}.wav", split, s, i);
        run_or_fail(speak_command(speaker, delivery_of(split, s, i), spoken_sentence(split, s, i), spoken.string()),
                    folder.scratch(), "speakers");
        write_clip(spoken, type, clip_path(folder, split, speaker.name, i));
        fs::remove(spoken);
      });
      progress.advance(each);
    }
  }
}

void make_voices(const CacheFolder& folder) {
  require_program("apt-get", "apt", "voices");
  require_program("dpkg-deb", "dpkg", "voices");
  const SampleType type = SampleType::audio(1, kVoicesLength, kVoicesRate);
  Progress progress("unpacking", kVoices, "voices");
  for (const Voice& voice : kAllVoices) {
    fs::path work = folder.scratch() / voice.name;
    fs::create_directories(work);
    run_or_fail({"apt-get", "download", voice.package}, work, "voices");
    run_or_fail({"dpkg-deb", "-x", file_ending(work, ".deb", "voices").string(), "unpacked"}, work, "voices");
    std::vector<fs::path> prompts = prompts_in(work / "unpacked/usr/share/asterisk/sounds");
    constexpr auto kWanted = static_cast<std::size_t>(kVoicesTrainEach + kVoicesTestEach);
    if (prompts.size() < kWanted)
      bad_input("{}: has {} prompts of a second or more, fewer than the {} it had", voice.package, prompts.size(),
                kWanted);
    for (const char* split : {"train", "test"}) fs::create_directories(folder.file(split) / voice.name);
    // Every fifth is for testing.
    for (std::size_t i = 0; i < kWanted; ++i)
      write_clip(prompts[i * prompts.size() / kWanted], type,
                 clip_path(folder, i % 5 == 4 ? "test" : "train", voice.name, static_cast<std::int64_t>(i)));
    progress.advance(1);
  }
}

}  // namespace galvani
