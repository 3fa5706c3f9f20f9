#include "fuzz/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/staging.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/settings.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLock = "campaign.lock";
constexpr const char* kMarker = "campaign.begun";
constexpr std::string_view kMarkerText =
    "galvani: a campaign begins in this folder (c1f7a3d0-5a54-4a0e-9b0b-3f6f0c8f2d11)\n";
// What SQLite makes, in the order in which it can be cleared away.
constexpr const char* kStoreFiles[] = {"campaign.db-journal", "campaign.db-wal", "campaign.db-shm", "campaign.db"};
constexpr const char* kRecord = "campaign.toml";
constexpr const char* kSeal = "seal";
constexpr std::size_t kLongestLock = 20;  // the number of a process

// False: it was there.
bool make_folder(const fs::path& folder) {
  std::error_code error;
  bool made = fs::create_directories(folder, error);
  if (error) fail(ErrorCode::environment, "{}: cannot be made: {}", folder.string(), error.message());
  return made;
}

[[noreturn]] void refuse(const fs::path& folder, const fs::path& found, Begun begun) {
  std::string name = found.lexically_relative(folder).string();
  if (begun == Begun::merge)
    bad_usage("{}: is in the way, for it holds '{}', which is not of a merge that was cut off; move the folder away",
              folder.string(), printable(name));
  if (name == "campaign.db")
    bad_usage("{}: holds a campaign.db without its campaign.toml; put that back, or choose another folder with -o",
              folder.string());
  bad_usage("{}: holds '{}' and no campaign; choose another folder with -o", folder.string(), printable(name));
}

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> result;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) result.push_back(entry);
  if (error) fail(ErrorCode::environment, "{}: cannot be read: {}", folder.string(), error.message());
  std::sort(result.begin(), result.end());
  return result;
}

bool is_file(const fs::directory_entry& entry) {
  std::error_code error;
  return fs::is_regular_file(entry.symlink_status(error));
}
bool is_folder(const fs::directory_entry& entry) {
  std::error_code error;
  return fs::is_directory(entry.symlink_status(error));
}

bool is_lock(std::string_view text) {
  return text.size() <= kLongestLock && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// At most a little more than what we would have written.
std::string start_of(const fs::path& file) {
  constexpr std::size_t kMost = 200;
  std::string text(kMost, '\0');
  int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  ssize_t n = fd < 0 ? 0 : ::read(fd, text.data(), text.size());
  if (fd >= 0) ::close(fd);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, n)));
  return text;
}

// Everything in a folder that holds no campaign, but for the lock, must be what a beginning makes. True: one was cut
// off.
bool check_beginning(const fs::path& folder, Begun kind) {
  bool merge = kind == Begun::merge;
  std::vector<fs::directory_entry> others;
  bool begun = false;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    std::string name = entry.path().filename().string();
    if (name == kLock && is_file(entry) && is_lock(start_of(entry))) continue;
    if (name == kMarker && is_file(entry) && start_of(entry) == kMarkerText) {
      begun = true;
      continue;
    }
    others.push_back(entry);
  }
  // Killed before the marker was written to its end, nothing else was made.
  bool half_marker = others.size() == 1 && others[0].path().filename() == kMarker && is_file(others[0]) &&
                     kMarkerText.substr(0, start_of(others[0]).size()) == start_of(others[0]);
  if (half_marker) return false;
  for (const fs::directory_entry& entry : others) {
    std::string name = entry.path().filename().string();
    if (!begun) refuse(folder, entry, kind);
    bool store = std::find(std::begin(kStoreFiles), std::end(kStoreFiles), name) != std::end(kStoreFiles);
    if ((store || name == stored_profile("") || (merge && name == kRecord)) && is_file(entry)) continue;
    if ((name != "faults" && name != "state") || !is_folder(entry)) refuse(folder, entry, kind);
    for (const fs::directory_entry& inner : entries_of(entry)) {
      std::string inside = inner.path().filename().string();
      bool placed = name == "faults" ? Staging::is_ours(inside) : inside == kSeal;
      if (merge && placed && is_file(inner)) continue;
      if (name != "state" || inside != "new" || !is_folder(inner)) refuse(folder, inner, kind);
      for (const fs::directory_entry& made : entries_of(inner)) {
        if (!is_file(made) || !Staging::is_ours(made.path().filename().string())) refuse(folder, made, kind);
      }
    }
  }
  return begun;
}

void remove_file(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) fail(ErrorCode::environment, "{}: cannot be removed: {}", file.string(), error.message());
}

// REQUIRES check_beginning.
void clear_beginning(const fs::path& folder, Begun begun) {
  for (const char* name : kStoreFiles) remove_file(folder / name);
  Staging staging(folder);
  for (const std::string& name : staging.left()) staging.discard(name);
  if (begun != Begun::merge) return;
  remove_file(folder / kRecord);
  remove_file(stored_profile(folder));
  remove_file(folder / "state" / kSeal);
  for (const fs::directory_entry& fault : entries_of(folder / "faults")) remove_file(fault);
}

void write_marker(const fs::path& file) {
  int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  bool good = fd >= 0 &&
              ::write(fd, kMarkerText.data(), kMarkerText.size()) == static_cast<ssize_t>(kMarkerText.size()) &&
              ::fsync(fd) == 0;
  int reason = errno;
  if (fd >= 0) ::close(fd);
  if (!good) fail(ErrorCode::environment, "{}: cannot be written: {}", file.string(), std::strerror(reason));
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) : folder_(folder), made_folder_(make_folder(folder)) {
  // Whoever had the lock may have taken the file away since it was opened: then it locks nothing.
  struct stat opened {};
  struct stat there {};
  do {
    if (fd_ >= 0) ::close(fd_);
    take();
  } while (::fstat(fd_, &opened) == 0 &&
           (::stat((folder / kLock).c_str(), &there) != 0 || opened.st_ino != there.st_ino));
  std::string process = std::to_string(::getpid());
  if (::ftruncate(fd_, 0) == 0) (void)!::pwrite(fd_, process.data(), process.size(), 0);
}

void FolderLock::take() {
  fs::path path = folder_ / kLock;
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  fd_ = ::open(path.c_str(), kFlags | O_EXCL, 0666);
  made_file_ = fd_ >= 0;
  if (!made_file_ && errno == EEXIST) fd_ = ::open(path.c_str(), kFlags, 0666);
  if (fd_ < 0) fail(ErrorCode::environment, "{}: cannot be written: {}", path.string(), std::strerror(errno));
  char text[kLongestLock + 2] = "";
  ssize_t n = ::pread(fd_, text, sizeof text - 1, 0);
  std::string process(text, text + std::max<ssize_t>(0, n));
  int reason = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  if (n < 0 || !is_lock(process)) {
    ::close(fd_);
    bad_usage("{}: is not a campaign's lock; choose another folder with -o", path.string());
  }
  if (reason != 0) {
    ::close(fd_);
    if (reason != EWOULDBLOCK)
      fail(ErrorCode::environment, "{}: cannot be locked: {}", path.string(), std::strerror(reason));
    fail(ErrorCode::environment, "{}: another process{} works in this folder; wait for it or stop it", folder_.string(),
         process.empty() ? "" : " (" + process + ")");
  }
}

FolderLock::~FolderLock() {
  std::error_code error;
  if (made_file_ && std::distance(fs::directory_iterator(folder_, error), fs::directory_iterator()) == 1) {
    ::unlink((folder_ / kLock).c_str());
    if (made_folder_) ::rmdir(folder_.c_str());
  }
  ::close(fd_);
}

FolderReadLock::FolderReadLock(const fs::path& folder)
    : fd_(::open((folder / kLock).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)) {
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
  make_folder(Staging(folder).folder());
}

void require_folder(const fs::path& folder) {
  if (fs::is_directory(folder)) return;
  std::error_code ignored;
  if (fs::exists(folder, ignored))
    bad_input("{}: is a file, but a campaign is the folder that fuzz or attack wrote", folder.string());
  bad_input("{}: there is no such folder", folder.string());
}

void check_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error)) bad_usage("{}: is not a folder; choose another with -o", folder.string());
  if (is_campaign(folder)) {
    CampaignRecord::from_toml(folder / "campaign.toml");
  } else {
    check_beginning(folder, Begun::start);
  }
}

void begin_folder(const fs::path& folder, Begun begun) {
  bool cut_off = check_beginning(folder, begun);
  if (!cut_off) write_marker(folder / kMarker);
  make_subfolders(folder);
  if (cut_off) clear_beginning(folder, begun);
}

void take_back_merge(const fs::path& folder) {
  if (!check_beginning(folder, Begun::merge)) return;
  clear_beginning(folder, Begun::merge);
  for (const char* name : {"faults", "state/new", "state", kMarker}) remove_file(folder / name);
}

void end_beginning(const fs::path& folder) {
  fs::path marker = folder / kMarker;
  if (start_of(marker) == kMarkerText) remove_file(marker);
}

}  // namespace galvani
