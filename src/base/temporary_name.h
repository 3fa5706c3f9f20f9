// Files in the making that have a name: the handler that ends the process at once removes them, and so does exit.
#pragma once

#include <filesystem>
#include <string>

namespace galvani {

class TemporaryName {
 public:
  // A name beside `target` that nothing has yet, known to remove_temporary_names() from here on.
  explicit TemporaryName(const std::filesystem::path& target);
  // Removes what has the name; forgets it if release() was called.
  ~TemporaryName();
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  const char* c_str() const { return path_.c_str(); }
  void release();

 private:
  std::string path_;
  std::size_t slot_;
  bool released_ = false;
};

// What may be called in a signal handler.
void remove_temporary_names() noexcept;

}  // namespace galvani
