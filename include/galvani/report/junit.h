// Conditions as JUnit XML, which continuous integration systems show as tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/fuzz/reader.h"

namespace galvani {

// One input, or fault: neither of both texts means that it passed.
struct JunitCase {
  std::string name;
  std::string failure;
  std::string skipped;  // why it says nothing
};

// What the conditions are on.
struct JunitSuite {
  std::string name;                   // "galvani fuzz kmnc"
  std::string subject;                // the campaign's folder, the model
  double seconds = 0;                 // that the work took
  std::vector<std::string> details;   // lines that tell more about a failure
  std::vector<JunitCase> cases = {};  // that stand beside the conditions
};

// One test a condition, which fails when the condition is met, and one a case.
std::string junit_xml(const JunitSuite& suite, const std::vector<Gate>& gates, const Figures& figures);

// The first faults of a campaign, a line each.
std::vector<std::string> fault_lines(const CampaignReader& reader, std::int64_t most = 20);

}  // namespace galvani
