#include "fuzz/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "fuzz/rows.h"
#include "galvani/base/archive.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"

namespace galvani {
namespace {

template <class Record>
void put_row(ArchiveWriter& out, const Record& record) {
  for_each_field(record, [&](const char* column, const auto& value) {
    bool later = is_later_column(column);
    if (later && value == std::decay_t<decltype(value)>()) return;
    if (later) out.put(column);
    out.put(value);
  });
}

// Rows of one table, with their images where they are in the store.
template <class Record>
void put_rows(ArchiveWriter& out, const std::vector<WithImage<Record>>& rows) {
  std::vector<std::string> images(rows.size());
  workers().run(static_cast<std::int64_t>(rows.size()), [&](std::int64_t index, int) {
    auto i = static_cast<std::size_t>(index);
    images[i] = sha256(rows[i].encoded);
  });
  out.put(static_cast<std::uint64_t>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    put_row(out, rows[i].record);
    out.put(images[i]);
  }
}

template <class Record>
void put_rows(ArchiveWriter& out, const std::vector<Record>& rows) {
  out.put(static_cast<std::uint64_t>(rows.size()));
  for (const Record& row : rows) put_row(out, row);
}

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) return "'" + printable(value, value.size()) + "'";
  // Doubles with all their digits, so that what is the same as text is the same.
  if constexpr (std::is_same_v<T, double>) return fmt::format("{:.17g}", value);
  return fmt::format("{}", value);
}

// The first field that differs, as "confidence was 0.5 and is 0.25"; empty: none.
template <class Record>
std::string field_difference(const Record& stored, const Record& now) {
  std::vector<std::string> before;
  std::string found;
  for_each_field(stored, [&](const char*, const auto& value) { before.push_back(shown(value)); });
  std::size_t next = 0;
  for_each_field(now, [&](const char* column, const auto& value) {
    const std::string& then = before[next++];
    if (found.empty() && then != shown(value)) found = fmt::format("{} was {} and is {}", column, then, shown(value));
  });
  return found;
}

std::string field_difference(const NewInput& stored, const NewInput& now) {
  std::string found = field_difference(stored.record, now.record);
  return found.empty() && stored.encoded != now.encoded ? "its image is another" : found;
}

std::int64_t id_of(const FaultRecord& fault) {
  return fault.id;
}
std::int64_t id_of(const NewInput& input) {
  return input.record.id;
}

template <class Row>
std::string rows_difference(const char* what, const std::vector<Row>& stored, const std::vector<Row>& now) {
  for (std::size_t i = 0; i < std::min(stored.size(), now.size()); ++i) {
    std::string found = field_difference(stored[i], now[i]);
    if (!found.empty()) return fmt::format("{} {}: {}", what, id_of(stored[i]), found);
  }
  if (stored.size() == now.size()) return "";
  return fmt::format("there were {} of kind {} and are {}", stored.size(), what, now.size());
}

}  // namespace

void PickSum::add(std::int64_t entry, std::int64_t times) {
  constexpr std::uint64_t kPicks = 0x7069636b73;  // "picks": other sums would not look like this one
  sum_ += mix(kPicks, static_cast<std::uint64_t>(entry)) * static_cast<std::uint64_t>(times);
}

std::string totals_value(const Yields& yields, const PickSum& picks) {
  std::vector<YieldRecord> drawn;
  for (const YieldRecord& yield : yields.kinds) {
    if (yield.mutants > 0) drawn.push_back(yield);
  }
  std::sort(drawn.begin(), drawn.end(), [](const YieldRecord& a, const YieldRecord& b) { return a.name < b.name; });
  ArchiveWriter out;
  put_rows(out, drawn);
  put_rows(out, yields.classes);
  out.put(picks.value());
  return sha256(out.bytes());
}

std::string chain_value(const Beginning& beginning) {
  ArchiveWriter out;
  out.put(beginning.identity);
  put_rows(out, beginning.seeds);
  put_rows(out, beginning.wrong);
  out.put(static_cast<std::uint64_t>(beginning.classes.size()));
  for (const std::string& name : beginning.classes) out.put(name);
  put_row(out, beginning.counters);
  out.put(beginning.totals);
  if (!beginning.absorbed.empty()) out.put(sha256(beginning.absorbed));
  return sha256(out.bytes());
}

std::string chain_value(const std::string& previous, const BatchRecord& batch) {
  ArchiveWriter out;
  out.put(previous);
  put_rows(out, batch.inputs);
  put_rows(out, batch.faults);
  put_row(out, batch.counters);
  out.put(batch.totals);
  return sha256(out.bytes());
}

std::string difference(const BatchRecord& stored, const BatchRecord& now) {
  std::string found = rows_difference("kept mutant", stored.inputs, now.inputs);
  if (found.empty()) found = rows_difference("fault", stored.faults, now.faults);
  if (found.empty()) found = field_difference(stored.counters, now.counters);
  if (found.empty() && stored.totals != now.totals) found = "picks, or what kinds or classes yielded, are others";
  return found;
}

}  // namespace galvani
