// Where the time goes that this process has spent on work that is cut (galvani/base/crew.h), crew or not.
#pragma once

#include <cstdint>
#include <map>

namespace galvani {

struct CrewCosts {
  struct Kind {
    std::int64_t calls = 0;
    double seconds = 0;  // until this process had done its share
  };
  std::map<std::int64_t, Kind> runs;  // by the number of tasks, which says how far they can be cut
  double share_seconds = 0;           // until all had all of it, waiting for others included
  std::int64_t shared_bytes = 0;      // of all processes together
};
const CrewCosts& crew_costs();

}  // namespace galvani
