// --fail-if and --junit, for every verb that ends with figures.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/report/junit.h"
#include "verb.h"

namespace galvani::cli {

struct GateFlags {
  std::vector<std::string> conditions;
  std::string junit;
  std::string usual;    // the condition --junit writes where none is given; empty: one must be
  bool silent = false;  // standard output has data

  // `example` is a condition, for the help.
  void add_to(Verb& verb, const std::string& example);

  // As soon as the names of the figures are known, so that a mistake is told before the work is done.
  void check(const std::vector<std::string>& names) const;
  // Says which conditions hold, sets the exit code if one does, and writes the JUnit file. `details` is called when a
  // condition holds.
  void judge(Common& common, const Figures& figures, JunitSuite suite,
             const std::function<std::vector<std::string>()>& details = {}) const;
};

}  // namespace galvani::cli
