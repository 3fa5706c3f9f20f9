// The folder of a campaign: who works in it, and how it becomes one. Only what is proved to be ours is ever cleared
// away: a start leaves campaign.begun in an empty folder before anything else, and takes it away when the campaign
// exists.
#pragma once

#include <filesystem>

namespace galvani {

// Error(bad_input) unless it is a folder. A file may be a model, or a table of another verb.
void require_folder(const std::filesystem::path& folder);

// Held while a process works in the folder. Error(environment) if another one does, or the folder cannot be written.
// What it made, file and folder, goes with it if nothing else came into the folder.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  void take();
  std::filesystem::path folder_;
  bool made_folder_ = false;
  bool made_file_ = false;
  int fd_ = -1;
};

// Held while a campaign's folder is read as a whole: no process may begin to work in it. Error(environment) if one
// does. Writes nothing.
class FolderReadLock {
 public:
  explicit FolderReadLock(const std::filesystem::path& folder);
  ~FolderReadLock();
  FolderReadLock(const FolderReadLock&) = delete;
  FolderReadLock& operator=(const FolderReadLock&) = delete;

 private:
  int fd_;  // negative: nobody has ever worked here
};

// Usage error unless the folder holds a campaign, or one may begin there: it is missing, empty, or holds exactly what a
// start that was cut off leaves. Touches nothing.
void check_folder(const std::filesystem::path& folder);

// How a campaign comes into a folder: batch by batch, or all of it before its beginning ends.
enum class Begun { start, merge };

// All of these REQUIRE the lock. Clears away what a beginning of this kind that was cut off has left, and says that a
// campaign begins.
void begin_folder(const std::filesystem::path& folder, Begun begun = Begun::start);
// Takes back all that a merge has made since begin_folder.
void take_back_merge(const std::filesystem::path& folder);
// The campaign exists: nothing in its folder is the beginning of one any more.
void end_beginning(const std::filesystem::path& folder);
void make_subfolders(const std::filesystem::path& folder);

}  // namespace galvani
