// How many processes were started along with this one, as the launcher's environment says.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace galvani {

inline int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"}) {
    const char* value = std::getenv(name);
    std::int64_t number = value == nullptr ? 0 : std::strtol(value, nullptr, 10);
    if (number > 0) return static_cast<int>(number);
  }
  return 1;
}

}  // namespace galvani
