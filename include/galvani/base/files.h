// Reading and writing whole files, safely.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace galvani {

// The file's bytes; an Error names the path and the reason. Files larger than `limit` are refused before reading.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit = std::uint64_t{16} << 30);

// The whole of an OutputFile at once: regular files are replaced, links followed, FIFOs and devices written as they
// are.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// $GALVANI_CACHE, else $XDG_CACHE_HOME/galvani, else ~/.cache/galvani. Not created.
std::filesystem::path cache_folder();

// Lower-case hexadecimal SHA-256.
std::string sha256(std::string_view bytes);
// The same, of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::string_view bytes);
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};
std::string sha256_file(const std::filesystem::path& path);

// A folder of its own under the system's temporary folder, removed with its content at the end of its life.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& prefix = "galvani");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace galvani
