#include "fuzz/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "galvani/base/error.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLockName = "campaign.lock";

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorCode::environment, "{}: cannot be made: {}", folder.string(), error.message());
}

// What we make before campaign.toml says that the campaign exists.
bool is_ours(const std::string& name) {
  static const std::vector<std::string> names = {kLockName, "campaign.db", "campaign.db-wal", "campaign.db-shm",
                                                 "faults",  "state",       "profile"};
  return std::find(names.begin(), names.end(), name) != names.end() || name.rfind(".campaign", 0) == 0 ||
         name.rfind(".profile", 0) == 0;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  make_folder(folder);
  fs::path path = folder / kLockName;
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(ErrorCode::environment, "{}: cannot be written: {}", path.string(), std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    int reason = errno;
    char text[32] = "";
    ssize_t n = ::pread(fd_, text, sizeof text - 1, 0);
    ::close(fd_);
    if (reason != EWOULDBLOCK)
      fail(ErrorCode::environment, "{}: cannot be locked: {}", path.string(), std::strerror(reason));
    std::string process(text, text + std::max<ssize_t>(0, n));
    fail(ErrorCode::environment, "{}: another process{} works in this folder; wait for it or stop it", folder.string(),
         process.empty() ? "" : " (" + printable(process) + ")");
  }
  std::string process = std::to_string(::getpid());
  if (::ftruncate(fd_, 0) == 0) (void)!::pwrite(fd_, process.data(), process.size(), 0);
}

FolderLock::~FolderLock() {
  ::close(fd_);
}

FolderReadLock::FolderReadLock(const fs::path& folder)
    : fd_(::open((folder / kLockName).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)) {
  if (fd_ >= 0 && ::flock(fd_, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    fail(ErrorCode::environment, "{}: a process works in this folder; wait for it or stop it", folder.string());
  }
}

FolderReadLock::~FolderReadLock() {
  if (fd_ >= 0) ::close(fd_);
}

void make_subfolders(const fs::path& folder) {
  make_folder(folder / "faults");
  make_folder(folder / "state");
}

void check_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) || fs::exists(folder / "campaign.toml", error)) return;
  if (!fs::is_directory(folder, error)) bad_usage("{}: is not a folder; choose another with -o", folder.string());
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (!is_ours(name))
      bad_usage("{}: holds '{}' and no campaign; choose another folder with -o", folder.string(), printable(name));
  }
}

void clear_folder(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() == kLockName) continue;
    fs::remove_all(entry.path(), error);
    if (error) fail(ErrorCode::environment, "{}: cannot be removed: {}", entry.path().string(), error.message());
  }
}

void remove_temporary_files(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& place : {folder, folder / "state"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(place, ignored)) {
      std::string name = entry.path().filename().string();
      if (name.rfind(".campaign", 0) == 0 || name.rfind(".snapshot-", 0) == 0 || name.rfind(".profile", 0) == 0)
        fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace galvani
