// Writing a result to wherever the user said, piece by piece, in bounded memory.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace galvani {

class TemporaryName;
namespace courier {
class Parcel;
}

enum class Writes {
  through,  // where the user said: a symbolic link stays, and the file it names is written
  over,     // in a folder that a stranger may have filled: whatever has the name, a link too, is replaced
};

// A regular file, or a new one, appears or is replaced as a whole by commit(); a reader sees the old file or the new
// one, never half of it, and without a commit nothing is left. Its permissions stay. Anything else (FIFO, device,
// /dev/stdout) is opened and written as it is, unless it is written over.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& wanted, Writes writes = Writes::through);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Errors are Error(environment) that names the path. Waiting for the reader of a FIFO can be interrupted.
  void write(std::string_view bytes);
  void commit();

  // Of the file in the making, for somebody else to write to.
  int descriptor() const { return fd_; }

 private:
  // The name that is replaced in the end, after links. Empty: opened already, as it is.
  std::filesystem::path follow();
  void open_as_it_is(mode_t mode);
  void open_temporary();
  void put(std::string_view bytes);
  void wait_until_writable() const;
  void replace();
  [[noreturn]] void failed() const;

  std::filesystem::path path_;    // as the user wrote it
  std::filesystem::path target_;  // after its symbolic links; empty: written as it is
  std::optional<mode_t> mode_;    // of the file that is replaced, if there is one
  int fd_ = -1;
  std::unique_ptr<TemporaryName> name_;      // of the file in the making, where it needs one
  std::unique_ptr<courier::Parcel> parcel_;  // in a confined process: the courier puts the file into its place
  std::string buffer_;
};

// The whole of an OutputFile with Writes::over at once.
void write_over(const std::filesystem::path& path, std::string_view bytes);

// Error(environment) if an OutputFile could not be made there now: asked before long work. Nothing is made or opened.
void check_output(const std::filesystem::path& path, Writes writes = Writes::through);

// A file that an OutputFile made and that is not wanted any more; nothing happens if there is none.
void remove_output(const std::filesystem::path& path);

}  // namespace galvani
