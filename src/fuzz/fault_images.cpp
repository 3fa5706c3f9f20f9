#include "fuzz/fault_images.h"

#include <charconv>
#include <string_view>

namespace galvani {
namespace {

// The number in the name of its file: its own, or that of the first fault with the same input.
std::int64_t number_of_file(const FaultRecord& fault) {
  constexpr std::string_view kStart = "faults/";
  std::int64_t number = 0;
  if (fault.file.rfind(kStart, 0) == 0)
    std::from_chars(fault.file.data() + kStart.size(), fault.file.data() + fault.file.size(), number);
  return number;
}

}  // namespace

FaultImages::FaultImages(Database& database) : database_(database) {
  Statement row(database_, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'fault_images'");
  any_ = row.step();
}

std::optional<std::string> FaultImages::find(const FaultRecord& fault) const {
  if (!any_) return std::nullopt;
  std::lock_guard<std::mutex> lock(mutex_);
  Statement row(database_, "SELECT image FROM fault_images WHERE id = ?");
  row.bind(number_of_file(fault));
  if (!row.step()) return std::nullopt;
  return std::string(row.blob(0));
}

std::int64_t FaultImages::without_fault() const {
  if (!any_) return 0;
  Statement row(database_,
                "SELECT count(*) FROM fault_images WHERE id NOT IN (SELECT id FROM faults WHERE is_distinct = 1)");
  return row.step() ? row.integer(0) : 0;
}

void FaultImages::create_table(Database& database) {
  database.execute("CREATE TABLE IF NOT EXISTS fault_images(id INTEGER PRIMARY KEY, image BLOB NOT NULL)");
}

}  // namespace galvani
