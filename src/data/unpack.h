// gzip through zlib (libarchive does not verify its checksum), zip and tar through libarchive; always with a bound on
// what comes out. Nothing is ever written where an archive's entry says: entries are handed over by name, as bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "galvani/data/package.h"

namespace galvani {

// The decompressed bytes of a gzip file, front to back.
class GzipReader {
 public:
  explicit GzipReader(const std::filesystem::path& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Up to n bytes; fewer only at the end. Error(bad_input) if the data is damaged, which its checksum at the end may be
  // the first to tell: read until nothing comes.
  std::size_t read(char* out, std::size_t n);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

bool is_gzip(const std::filesystem::path& path);

// The file's bytes, decompressed if it is gzip; more than `limit` of them is an error.
std::string read_maybe_gzip(const std::filesystem::path& path, std::uint64_t limit);

// The bytes of a zip archive, the same for the same content.
std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& entries, bool deflate);

}  // namespace galvani
