// Some of many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/model/network.h"
#include "galvani/quality/tests.h"

namespace galvani::cli {

// Up to `most` places of n, spread evenly; 0: all.
inline std::vector<std::int64_t> spread_rows(std::int64_t n, std::int64_t most) {
  std::int64_t count = most == 0 ? n : std::min(n, most);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(i * n / count);
  return rows;
}

// At most so many faults of a campaign, spread over all of them, that the model can be asked about.
inline TestRows spread_tests(const Network& network, const std::string& folder, std::int64_t most) {
  CampaignReader reader(folder);
  std::unique_ptr<TestSet> tests = campaign_tests(reader);
  if (tests->size() == 0) bad_usage("{}: has no faults to look at", folder);
  if (network.info().classes != reader.classes())
    bad_usage("{}: knows {} classes, the model of {} {}", network.info().path, network.info().classes, folder,
              reader.classes());
  TestRows found = tests->fetch(spread_rows(tests->size(), most));
  check_fits(network, found.tests, folder);
  return found;
}

}  // namespace galvani::cli
