// The folder of a campaign: who works in it, what is in it.
#pragma once

#include <filesystem>

namespace galvani {

// Held while a process works in the folder. Error(environment) if another one does, or the folder cannot be written.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
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

// Usage error if there is a folder that holds anything but a campaign or the beginning of one.
void check_folder(const std::filesystem::path& folder);
// Clears away what a start that was cut off has left. REQUIRES check_folder and the lock.
void clear_folder(const std::filesystem::path& folder);
void make_subfolders(const std::filesystem::path& folder);

// Files that were being written when a process was killed.
void remove_temporary_files(const std::filesystem::path& folder);

}  // namespace galvani
