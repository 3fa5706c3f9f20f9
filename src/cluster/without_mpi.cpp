// A build without MPI.
#include "cluster/launch.h"
#include "galvani/base/error.h"
#include "galvani/cluster/mpi.h"

namespace galvani {

bool mpi_built() {
  return false;
}

MpiJob::MpiJob(int, char**) {
  if (launched_processes() > 1)
    bad_usage(
        "{} processes were started together, but this program was built without MPI: install libopenmpi-dev and build "
        "again",
        launched_processes());
}
MpiJob::~MpiJob() = default;
void MpiJob::leave(int, const std::string&) {}

}  // namespace galvani
