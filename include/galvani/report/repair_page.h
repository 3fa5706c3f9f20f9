// A repair as one HTML page that needs nothing else.
#pragma once

#include <string>

#include "galvani/repair/repair.h"

namespace galvani {

struct RepairSubject {
  std::string model;  // files
  std::string output;
  std::string how;  // describe()
};

// Tables of what every network gets right, of rounds and classes, and pictures of the clean inputs that broke anew.
std::string repair_page(const RepairResult& result, const RepairSubject& subject);

}  // namespace galvani
