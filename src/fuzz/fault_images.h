// Images of faults that got no file, for their number is limited (--keep-files): a table of campaign.db that only such
// campaigns have.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "fuzz/sqlite.h"
#include "galvani/fuzz/records.h"

namespace galvani {

class FaultImages {
 public:
  explicit FaultImages(Database& database);

  // The encoded input, if it is in the store: of a fault that shares that of an earlier one, too. From any thread.
  std::optional<std::string> find(const FaultRecord& fault) const;

  // Rows that are of no distinct fault.
  std::int64_t without_fault() const;

  static void create_table(Database& database);

 private:
  Database& database_;
  bool any_;
  mutable std::mutex mutex_;
};

}  // namespace galvani
