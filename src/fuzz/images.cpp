#include "fuzz/images.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "fuzz/fault_files.h"
#include "galvani/base/descriptor.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const fs::path& path, int reason) {
  std::string name = printable(path.string(), 500);
  if (reason == ENOENT) bad_input("{}: there is no such file", name);
  // What O_NOFOLLOW says of a link, with and without O_DIRECTORY.
  if (reason == ELOOP || reason == ENOTDIR)
    bad_input("{}: is a symbolic link or lies behind one, which no campaign makes; put the file itself there", name);
  bad_input("{}: cannot be read: {}", name, std::strerror(reason));
}

// A regular file below `folder`, no step to which is a link, of no more than `limit` bytes.
std::string read_contained(const fs::path& folder, const fs::path& relative, std::uint64_t limit) {
  fs::path path = folder / relative;
  Descriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) refuse(folder, errno);
  for (auto step = relative.begin(); step != relative.end(); ++step) {
    bool last = std::next(step) == relative.end();
    // A pipe without a writer would be waited for.
    int fd = ::openat(at.get(), step->c_str(),
                      O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY));
    if (fd < 0) refuse(path, errno);
    at.reset(fd);
  }
  struct stat status {};
  if (::fstat(at.get(), &status) != 0) refuse(path, errno);
  if (!S_ISREG(status.st_mode)) bad_input("{}: is not a regular file", path.string());
  auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit)
    bad_input("{}: is {}, more than the {} it can have", path.string(), format_bytes(size), format_bytes(limit));
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = ::read(at.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(path, errno);
    if (n == 0) bad_input("{}: ended while being read", path.string());
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

// Whether a fault's file has a name that this program gives: its own, or that of an earlier fault with the same input.
bool names_own_file(const FaultRecord& fault, const SampleType& type) {
  constexpr std::string_view kStart = "faults/";
  if (fault.file.rfind(kStart, 0) != 0) return false;
  std::int64_t first = 0;
  std::from_chars(fault.file.data() + kStart.size(), fault.file.data() + fault.file.size(), first);
  return first >= 1 && first <= fault.id && fault.file == fault_file(first, fault.label, fault.predicted, type);
}

}  // namespace

std::string pixel_hash(const at::Tensor& image) {
  at::Tensor pixels = image.contiguous();
  return sha256({static_cast<const char*>(pixels.data_ptr()), pixels.nbytes()});
}

std::string fault_bytes(const fs::path& folder, const FaultRecord& fault, const fs::path& place,
                        const SampleType& type) {
  if (!names_own_file(fault, type))
    bad_input("{}: its store says that fault {} is in '{}', which no campaign writes; the store was changed",
              folder.string(), fault.id, printable(fault.file));
  return read_contained(folder, place, 2 * type.bytes() + (1 << 16));
}

at::Tensor verified_input(std::string_view file, const SampleType& type, const std::string& sha256,
                          const std::string& what) {
  Sample sample = decode_sample(file, what);
  if (sample.type != type || pixel_hash(sample.values) != sha256)
    bad_input("{}: holds other {} than it did", what, type.kind == SampleKind::image ? "pixels" : "samples");
  return sample.values;
}

}  // namespace galvani
