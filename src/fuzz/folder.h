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

// Makes the folder with its subfolders, or clears away what a start that was cut off has left. Usage error if it holds
// anything else.
void prepare_folder(const std::filesystem::path& folder);
void make_subfolders(const std::filesystem::path& folder);

// Files that were being written when a process was killed.
void remove_temporary_files(const std::filesystem::path& folder);

// Everything written in the folder's file system reaches the disk.
void synchronise(const std::filesystem::path& folder);

}  // namespace galvani
