// The wall around a process that runs models nobody vouches for: it may write beneath a few folders, and no more start
// programs or open connections, whatever a model makes it do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace galvani {

struct Confinement {
  std::vector<std::filesystem::path> folders;      // anything beneath may be written; those that are missing are made
  std::vector<std::filesystem::path> files;        // each may be written by write_file; a helper process does it
  std::vector<std::filesystem::path> places = {};  // the same with Writes::over
};

struct Confined {
  bool active = false;
  std::string how;  // for people: what is closed, or why nothing is
};

// For the whole process from now on; it cannot be undone. Call it while there is one thread: others, that are running,
// keep their freedom (Landlock is a property of threads, inherited by those they start). Not supported by the kernel:
// not active, and nothing else happens.
Confined confine(const Confinement& confinement);

}  // namespace galvani
