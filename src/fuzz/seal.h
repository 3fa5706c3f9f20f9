// state/seal: what the files of a campaign were when a session ended, for the bytes that no row and no checksum covers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace galvani {

struct SealedFile {
  std::string name;  // relative to the campaign's folder
  std::uint64_t size = 0;
  std::string sha256;
};

struct Seal {
  std::int64_t batch = 0;  // the last one in the store; any later one makes the seal stale
  std::vector<SealedFile> files;
};

// REQUIRES that everything is in campaign.db itself, not in its log.
void write_seal(const std::filesystem::path& folder, std::int64_t batch);
// Nothing if there is none; Error(bad_input) if it is damaged.
std::optional<Seal> read_seal(const std::filesystem::path& folder);
// What is not as it was sealed, a sentence each.
std::vector<std::string> broken_by(const Seal& seal, const std::filesystem::path& folder);

}  // namespace galvani
