#include "row_file.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "galvani/base/error.h"

namespace galvani {

RowFile::RowFile(std::filesystem::path path, std::uint64_t offset, std::uint64_t stride)
    : path_(std::move(path)), offset_(offset), stride_(stride), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) bad_input("{}: cannot be read: {}", path_.string(), std::strerror(errno));
}

RowFile::RowFile(std::filesystem::path path, std::string rows, std::uint64_t stride)
    : path_(std::move(path)), stride_(stride), memory_(std::move(rows)) {}

RowFile::RowFile(RowFile&& other) noexcept
    : path_(std::move(other.path_)),
      offset_(other.offset_),
      stride_(other.stride_),
      memory_(std::move(other.memory_)),
      fd_(other.fd_) {
  other.fd_ = -1;
}

RowFile::~RowFile() {
  if (fd_ >= 0) ::close(fd_);
}

at::Tensor RowFile::array(const std::vector<std::int64_t>& rows, std::vector<std::int64_t> shape) const {
  shape[0] = static_cast<std::int64_t>(rows.size());
  at::Tensor result = at::empty(shape, at::kByte);
  auto* out = result.data_ptr<std::uint8_t>();
  for (std::size_t i = 0; i < rows.size(); ++i) read(rows[i], 0, stride_, out + i * stride_);
  return result;
}

void RowFile::read(std::int64_t row, std::uint64_t begin, std::uint64_t n, void* out) const {
  std::uint64_t at = offset_ + static_cast<std::uint64_t>(row) * stride_ + begin;
  if (fd_ < 0) {
    if (at + n > memory_.size()) bad_input("{}: ends before row {}", path_.string(), row);
    std::memcpy(out, memory_.data() + at, n);
    return;
  }
  for (std::uint64_t done = 0; done < n;) {
    ssize_t got = ::pread(fd_, static_cast<char*>(out) + done, n - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) bad_input("{}: cannot be read: {}", path_.string(), std::strerror(errno));
    if (got == 0) bad_input("{}: ends before row {}", path_.string(), row);
    done += static_cast<std::uint64_t>(got);
  }
}

}  // namespace galvani
