// The columns of a campaign's tables, and where a record keeps them: whatever writes, reads, hashes or compares rows
// walks these lists.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "fuzz/batch_record.h"
#include "fuzz/sqlite.h"
#include "galvani/base/archive.h"
#include "galvani/fuzz/records.h"

namespace galvani {

// visit(column, value) for every column of a record, in the order of its table. Images are not among them.
template <class Record, class Visit>
void for_each_field(Record& r, Visit&& visit) {
  using T = std::remove_const_t<Record>;
  if constexpr (std::is_same_v<T, SeedRecord>) {
    visit("id", r.id);
    visit("item", r.item);
    visit("label", r.label);
    visit("confidence", r.confidence);
    visit("gain", r.gain);
    visit("sha256", r.sha256);
    visit("source", r.source);
    visit("reference", r.reference);
  } else if constexpr (std::is_same_v<T, WrongSeedRecord>) {
    visit("item", r.item);
    visit("label", r.label);
    visit("predicted", r.predicted);
    visit("confidence", r.confidence);
    visit("source", r.source);
  } else if constexpr (std::is_base_of_v<MutantRecord, T>) {
    visit("id", r.id);
    if constexpr (std::is_same_v<T, FaultRecord>) visit("input", r.input);
    visit("parent", r.parent);
    visit("seed", r.seed);
    visit("iteration", r.iteration);
    visit("slot", r.slot);
    visit("rule", r.rule);
    visit("affine", r.affine);
    visit("label", r.label);
    visit("predicted", r.predicted);
    visit("confidence", r.confidence);
    if constexpr (std::is_same_v<T, InputRecord>) {
      visit("gain", r.gain);
      visit("fault", r.fault);
    }
    visit("is_distinct", r.distinct);
    visit("sha256", r.sha256);
    if constexpr (std::is_same_v<T, FaultRecord>) visit("file", r.file);
    visit("origin", r.origin);
    visit("unrepeatable", r.unrepeatable);
    visit("figures", r.figures);
    visit("metadata", r.metadata);
    if constexpr (std::is_same_v<T, FaultRecord>) visit("change", r.change);
  } else if constexpr (std::is_base_of_v<CampaignCounters, T>) {
    for_each_counter(r, [&](const char* column, const char*, auto& value) { visit(column, value); });
  } else {
    static_assert(std::is_same_v<T, YieldRecord>);
    visit("name", r.name);
    visit("mutants", r.mutants);
    visit("valid", r.valid);
    visit("kept", r.kept);
    visit("faults", r.faults);
    visit("kept_faults", r.kept_faults);
  }
}

// Columns that version 2 of the store did not have. Rows that leave them at zero or empty hash as they did then.
inline bool is_later_column(std::string_view column) {
  return column == "origin" || column == "unrepeatable" || column == "figures" || column == "metadata" ||
         column == "passes" || column == "source" || column == "change" || column == "reference";
}

// The fields of a record one after the other, in an archive of ours.
template <class Record>
void put_fields(ArchiveWriter& out, const Record& record) {
  for_each_field(record, [&](const char*, const auto& value) { out.put(value); });
}
// `later`: whether columns that version 2 did not have are there.
template <class Record>
void get_fields(ArchiveReader& in, Record& record, bool later = true) {
  for_each_field(record, [&](const char* column, auto& value) {
    if (!later && is_later_column(column)) return;
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>) {
      value = in.get_text();
    } else {
      value = in.get<T>();
    }
  });
}

// "id, parent, ...", or "inputs.id, inputs.parent, ..." of a table.
template <class Record>
std::string columns(const std::string& table = "") {
  std::string list;
  Record record;
  for_each_field(record, [&](const char* column, const auto&) {
    list += (list.empty() ? "" : ", ") + (table.empty() ? "" : table + ".") + column;
  });
  return list;
}

// Reads the columns of columns<Record>(), which start at column `next`; the column after them.
template <class Record>
int read_row(const Statement& row, Record& record, int next = 0) {
  for_each_field(record, [&](const char*, auto& value) { row.get(next++, value); });
  return next;
}

// "INSERT INTO table(columns, more) VALUES(?, ...)", and its parameters from the first on; the next parameter.
template <class Record>
std::string insert_into(const std::string& table, const std::string& more = "") {
  std::string names = columns<Record>() + (more.empty() ? "" : ", " + more);
  std::string marks = "?";
  for (char c : names) marks += c == ',' ? ", ?" : "";
  return "INSERT INTO " + table + "(" + names + ") VALUES(" + marks + ")";
}
template <class Record>
int bind_row(Statement& statement, const Record& record) {
  int next = 0;
  for_each_field(record, [&](const char*, const auto& value) { statement.set(next++, value); });
  return next;
}

// What the store holds of a batch, as far as a chain value covers it; Error(bad_input) naming `file` if it is not
// there.
Beginning read_beginning(Database& database, const std::string& file);
BatchRecord read_batch(Database& database, const std::string& file, std::int64_t batch);
// The tables of running totals.
Yields read_yields(Database& database);
// Beginning::absorbed.
std::string read_absorbed(Database& database);
// The chain value a batch was stored with; empty: there is no such batch.
std::string read_chain(Database& database, std::int64_t batch);

}  // namespace galvani
