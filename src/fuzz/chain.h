// A campaign's rows as a chain: every batch is stored with the SHA-256 of what it added and of the batch before. A
// batch that is repeated must come to the same value, and whoever reads the rows can compute all of them again.
#pragma once

#include <cstdint>
#include <string>

#include "fuzz/batch_record.h"

namespace galvani {

// How often which entry was picked, as one number: a sum over the picks in any order, so that a reader can add up the
// rows of `picks`.
class PickSum {
 public:
  void add(std::int64_t entry, std::int64_t times = 1);
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

// Of the tables that hold running totals, which only the last batch's can be compared with.
std::string totals_value(const Yields& yields, const PickSum& picks);

// Of batch 0, and of a later one after the value of the one before. PNGs are part of it, doubles count by their bits.
std::string chain_value(const Beginning& beginning);
std::string chain_value(const std::string& previous, const BatchRecord& batch);

// The first row and field that are not the same, such as "kept mutant 40: confidence was 0.5 and is 0.25"; empty: all
// that chain_value covers is the same.
std::string difference(const BatchRecord& stored, const BatchRecord& now);

}  // namespace galvani
