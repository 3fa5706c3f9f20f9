#include "galvani/base/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <utility>

#include "base/courier.h"
#include "base/temporary_name.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kBuffer = 1 << 16;
constexpr int kMostLinks = 40;  // as the kernel has it
constexpr int kPollMilliseconds = 100;

// The number of a descriptor that /dev/stdout, /dev/fd/3 and the like stand for; -1 for any other link.
int own_descriptor(const fs::path& link) {
  std::error_code error;
  fs::path folder = fs::canonical(link.parent_path(), error);
  if (error || folder != fs::canonical("/proc/self/fd", error)) return -1;
  std::string name = link.filename().string();
  int number = -1;
  auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  return bad == std::errc() && end == name.data() + name.size() ? number : -1;
}

fs::path folder_of(const fs::path& path) {
  return path.parent_path().empty() ? fs::path(".") : path.parent_path();
}

// A file without a name can be given one only through /proc.
std::string descriptor_path(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

}  // namespace

void OutputFile::failed() const {
  fail(ErrorCode::environment, "{}: cannot be written: {}", path_.string(), std::strerror(errno));
}

OutputFile::OutputFile(const fs::path& wanted, Writes writes) : path_(leads() ? wanted : fs::path("/dev/null")) {
  if (path_.empty()) fail(ErrorCode::environment, "the name of a file to write is empty");
  fs::path at = writes == Writes::over && leads() ? path_ : follow();
  if (at.empty()) return;
  if ((parcel_ = courier::Parcel::begin(path_))) {
    fd_ = parcel_->descriptor();
    return;
  }
  target_ = folder_of(at) / at.filename();
  struct stat status {};
  if (::lstat(target_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) open_as_it_is(status.st_mode);
    if (S_ISREG(status.st_mode)) mode_ = status.st_mode & 0777U;
  }
  open_temporary();
}

fs::path OutputFile::follow() {
  const fs::path& path = path_;
  struct stat status {};
  fs::path at = path;
  for (int links = 0; ::lstat(at.c_str(), &status) == 0 && S_ISLNK(status.st_mode); ++links) {
    if (links == kMostLinks)
      fail(ErrorCode::environment, "{}: cannot be written: its symbolic links lead in a circle", path.string());
    if (int number = own_descriptor(at); number >= 0) {
      // Opened anew it would have a position of its own and overwrite what is there.
      if ((fd_ = ::fcntl(number, F_DUPFD_CLOEXEC, 0)) < 0) failed();
      return {};
    }
    std::error_code error;
    fs::path next = fs::read_symlink(at, error);
    if (error) fail(ErrorCode::environment, "{}: cannot be written: {}", path.string(), error.message());
    at = at.parent_path() / next;
  }
  // The path again, for a link of /proc that leads to something without a name.
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    open_as_it_is(status.st_mode);
    return {};
  }
  return at;
}

void OutputFile::open_as_it_is(mode_t mode) {
  if (S_ISDIR(mode)) fail(ErrorCode::environment, "{}: is a folder, not a file", path_.string());
  if (S_ISSOCK(mode))
    fail(ErrorCode::environment, "{}: is a socket, which cannot be written like a file", path_.string());
  // Opening a FIFO waits for its reader; asked like this, it does not wait and says ENXIO.
  while ((fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | (S_ISFIFO(mode) ? O_NONBLOCK : 0))) < 0) {
    if (!S_ISFIFO(mode) || (errno != ENXIO && errno != EINTR)) failed();
    check_interrupt();
    ::poll(nullptr, 0, kPollMilliseconds);
  }
}

void OutputFile::open_temporary() {
  // Without a name nothing can be left behind, however the process ends. Not every file system can do that.
  fd_ = ::open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0 && ::access(descriptor_path(fd_).c_str(), F_OK) == 0) return;
  if (fd_ >= 0) ::close(fd_);
  name_ = std::make_unique<TemporaryName>(target_);
  fd_ = ::open(name_->c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ < 0) failed();
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() < kBuffer) {
    buffer_ += bytes;
    return;
  }
  put(buffer_);
  buffer_.clear();
  put(bytes);
}

void OutputFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    std::size_t most = bytes.size();
    if (target_.empty() && !parcel_) {
      wait_until_writable();
      most = std::min<std::size_t>(most, PIPE_BUF);  // what a pipe that is ready takes without waiting
    }
    ssize_t n = ::write(fd_, bytes.data(), most);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) failed();
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void OutputFile::wait_until_writable() const {
  pollfd waiting{fd_, POLLOUT, 0};
  while (::poll(&waiting, 1, kPollMilliseconds) <= 0) check_interrupt();
}

void OutputFile::commit() {
  put(buffer_);
  buffer_.clear();
  if (!target_.empty()) {
    if (mode_ && ::fchmod(fd_, *mode_) != 0) failed();
    if (::fsync(fd_) != 0) failed();
    replace();
  }
  if (::close(std::exchange(fd_, -1)) != 0) failed();
  if (parcel_) parcel_->commit();
}

void OutputFile::replace() {
  if (!name_) {
    std::string nameless = descriptor_path(fd_);
    if (::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
    if (errno != EEXIST) failed();
    // A link never replaces, a name does: this is the only moment at which there is one.
    name_ = std::make_unique<TemporaryName>(target_);
    if (::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name_->c_str(), AT_SYMLINK_FOLLOW) != 0) failed();
  }
  if (::rename(name_->c_str(), target_.c_str()) != 0) failed();
  name_->release();
}

void write_over(const fs::path& path, std::string_view bytes) {
  OutputFile file(path, Writes::over);
  file.write(bytes);
  file.commit();
}

void check_output(const fs::path& path, Writes writes) {
  auto refuse = [&](const char* why) { fail(ErrorCode::environment, "{}: cannot be written: {}", path.string(), why); };
  bool over = writes == Writes::over;
  struct stat status {};
  if ((over ? ::lstat : ::stat)(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail(ErrorCode::environment, "{}: is a folder, not a file", path.string());
    if (!over && !S_ISREG(status.st_mode)) return;  // a device or FIFO says itself what it takes
  } else if (errno != ENOENT) {
    refuse(errno == ELOOP ? "its symbolic links lead in a circle" : std::strerror(errno));
  }
  std::error_code error;
  // A link that leads nowhere yet: the file appears where it points to.
  fs::path at = !over && fs::is_symlink(path, error) ? path.parent_path() / fs::read_symlink(path, error) : path;
  // Where a file is replaced, its folder is what is written to.
  if (::access(folder_of(at).c_str(), W_OK | X_OK) != 0) refuse(std::strerror(errno));
}

void remove_output(const fs::path& path) {
  if (!leads()) return;
  if (!courier::remove(path)) fs::remove(path);
}

}  // namespace galvani
