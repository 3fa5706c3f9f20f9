// What the chain of batches (chain.h) does not cover by itself: running totals, rows that belong to no batch, the
// clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/sqlite.h"

namespace galvani {

// Rows that batches account for, the first one included, which is number 0.
struct RowCounts {
  std::int64_t inputs = 0;
  std::int64_t faults = 0;
  std::int64_t batches = 0;
};

// A sentence for everything that is wrong with them. `file`: what the database is called.
std::vector<std::string> loose_ends(Database& database, const std::string& file, const RowCounts& accounted);

// The sentence for a batch whose rows are not what was stored.
std::string broken_chain(const std::string& file, std::int64_t batch);

// Error(bad_input): the problem, and that `galvani check` knows more.
[[noreturn]] void refuse_damaged(const std::filesystem::path& folder, const std::string& problem);
// The same unless the rows of a batch give this value, their chain's.
void expect_chain(Database& database, const std::filesystem::path& folder, std::int64_t batch,
                  const std::string& value);

}  // namespace galvani
