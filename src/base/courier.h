// A small process that writes the outputs of a confined one. It is started before the wall goes up, knows the paths it
// may write from then on, and runs nothing but OutputFile: even a process that a model has taken over can only hand it
// the content of those files.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

namespace galvani::courier {

// `files`: what it may write; `places`: what it may write over. `folders`: what the confined process writes itself.
// `made`: folders that were made for it, outermost first; the courier removes those that are still empty when the
// process ends.
void start(const std::vector<std::filesystem::path>& files, const std::vector<std::filesystem::path>& places,
           const std::vector<std::filesystem::path>& folders, const std::vector<std::filesystem::path>& made);

// Removes one of the outputs. False: it is not the courier's to remove.
bool remove(const std::filesystem::path& path);

// One output in the making.
class Parcel {
 public:
  // Null unless a courier runs and may write this path, and the process itself may not.
  static std::unique_ptr<Parcel> begin(const std::filesystem::path& path);
  ~Parcel();  // without a commit nothing is left
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;

  int descriptor() const { return fd_; }  // to write the content to; the caller closes it
  // Puts it into its place. Error(environment) that names the path.
  void commit();

 private:
  Parcel(std::size_t index, int fd) : index_(index), fd_(fd) {}
  std::size_t index_;
  int fd_;
  bool open_ = true;
};

}  // namespace galvani::courier
