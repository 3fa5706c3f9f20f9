#include "fuzz/seal.h"

#include <fmt/format.h>

#include "fuzz/staging.h"
#include "galvani/base/archive.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSealKind = "campaign seal";
constexpr std::uint32_t kSealVersion = 1;
// The profile is not in every campaign.
constexpr const char* kFiles[] = {"campaign.db", "campaign.toml", "profile"};

constexpr const char* kPlace = "state/seal";

}  // namespace

void write_seal(const fs::path& folder, std::int64_t batch) {
  std::vector<SealedFile> files;
  for (const char* name : kFiles) {
    fs::path path = folder / name;
    if (fs::exists(path)) files.push_back({name, fs::file_size(path), sha256_file(path)});
  }
  ArchiveWriter out;
  out.put(batch);
  out.put(static_cast<std::uint64_t>(files.size()));
  for (const SealedFile& file : files) {
    out.put(file.name);
    out.put(file.size);
    out.put(file.sha256);
  }
  Staging staging(folder);
  write_sealed(staging.path("seal"), kSealKind, kSealVersion, out.bytes());
  staging.replace(kPlace);
}

std::optional<Seal> read_seal(const fs::path& folder) {
  fs::path path = folder / kPlace;
  if (!fs::exists(fs::symlink_status(path))) return std::nullopt;
  std::string payload = read_sealed(path, kSealKind, kSealVersion);
  ArchiveReader in(payload, path.string());
  Seal seal;
  seal.batch = in.get<std::int64_t>();
  auto count = in.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    SealedFile file;
    file.name = in.get_text();
    file.size = in.get<std::uint64_t>();
    file.sha256 = in.get_text();
    seal.files.push_back(std::move(file));
  }
  in.expect_end();
  return seal;
}

std::vector<std::string> broken_by(const Seal& seal, const fs::path& folder) {
  std::vector<std::string> result;
  for (const SealedFile& file : seal.files) {
    std::error_code error;
    std::uintmax_t size = fs::file_size(folder / file.name, error);
    if (error) {
      result.push_back(fmt::format("{}: is gone", printable(file.name)));
    } else if (size != file.size) {
      result.push_back(fmt::format("{}: had {} bytes when the last session ended and has {}", printable(file.name),
                                   file.size, size));
    } else if (sha256_file(folder / file.name) != file.sha256) {
      result.push_back(
          fmt::format("{}: is not what it was when the last session ended, byte for byte", printable(file.name)));
    }
  }
  return result;
}

}  // namespace galvani
