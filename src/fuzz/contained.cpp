#include "fuzz/contained.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "fuzz/fault_files.h"
#include "galvani/base/error.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

[[noreturn]] void refuse(const fs::path& path, int reason) {
  std::string name = printable(path.string(), 500);
  if (reason == ENOENT) bad_input("{}: there is no such file", name);
  // What O_NOFOLLOW says of a link, with and without O_DIRECTORY.
  if (reason == ELOOP || reason == ENOTDIR)
    bad_input("{}: is a symbolic link or lies behind one, which no campaign makes; put the file itself there", name);
  bad_input("{}: cannot be read: {}", name, std::strerror(reason));
}

}  // namespace

std::string read_contained(const fs::path& folder, const fs::path& relative, std::uint64_t limit) {
  fs::path path = folder / relative;
  if (relative.empty() || relative.is_absolute())
    bad_input("{}: lies outside the campaign's folder", printable(relative.string(), 500));
  Descriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) refuse(folder, errno);
  for (auto step = relative.begin(); step != relative.end(); ++step) {
    if (*step == ".." || *step == ".")
      bad_input("{}: lies outside the campaign's folder", printable(path.string(), 500));
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

bool names_own_file(const FaultRecord& fault) {
  constexpr std::string_view kStart = "faults/";
  if (fault.file.rfind(kStart, 0) != 0) return false;
  std::int64_t first = 0;
  std::from_chars(fault.file.data() + kStart.size(), fault.file.data() + fault.file.size(), first);
  return first >= 1 && first <= fault.id && fault.file == fault_file(first, fault.label, fault.predicted);
}

}  // namespace galvani
