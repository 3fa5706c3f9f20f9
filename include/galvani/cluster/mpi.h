// Processes started together by mpirun or srun become a crew (galvani/base/crew.h).
#pragma once

#include <string>

namespace galvani {

// Whether this build has MPI at all.
bool mpi_built();

// From the start of a program to its end. Where the process was started alone it does nothing.
class MpiJob {
 public:
  // Joins the others; before there are threads. All but the first process write nothing to standard output and error
  // from then on. Error(usage) for processes that were started together but do not know of each other.
  MpiJob(int argc, char** argv);
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  // Leaves the job with this exit code. If the others do not follow within a moment, because an error came over this
  // process alone, they are ended, too, and `sentence` is said by whoever has one.
  void leave(int exit_code, const std::string& sentence);

 private:
  bool joined_ = false;
  int own_stderr_ = -1;
};

}  // namespace galvani
