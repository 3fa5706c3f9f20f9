// Rows of equal length in a file, read where they are; or, for a gzip file, kept in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace galvani {

class RowFile {
 public:
  // Rows of `stride` bytes from `offset` on in a plain file.
  RowFile(std::filesystem::path path, std::uint64_t offset, std::uint64_t stride);
  // Rows already in memory.
  RowFile(std::filesystem::path path, std::string rows, std::uint64_t stride);
  ~RowFile();
  RowFile(RowFile&& other) noexcept;
  RowFile& operator=(RowFile&&) = delete;

  // REQUIRES begin + n <= stride.
  void read(std::int64_t row, std::uint64_t begin, std::uint64_t n, void* out) const;
  // Some rows of an array of bytes of this shape, of which the first axis is the rows: [rows.size(), ...].
  at::Tensor array(const std::vector<std::int64_t>& rows, std::vector<std::int64_t> shape) const;

 private:
  std::filesystem::path path_;
  std::uint64_t offset_ = 0;
  std::uint64_t stride_;
  std::string memory_;
  int fd_ = -1;
};

}  // namespace galvani
