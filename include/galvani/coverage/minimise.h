// The fewest inputs that keep the coverage of all, as corpus minimisers do for programs.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "galvani/coverage/features.h"

namespace galvani {

// Inputs as lists of features, numbered densely in the order of first sight so that they fit 32 bits.
class FeatureTable {
 public:
  // Adds the features that a criterion gave for a batch to the inputs from `first` on. `family` keeps the ids of
  // different criteria apart.
  void add(std::int64_t first, const Features& features, std::uint64_t family);

  std::int64_t inputs() const { return static_cast<std::int64_t>(rows_.size()); }
  std::size_t features() const { return numbers_.size(); }
  const std::vector<std::uint32_t>& row(std::int64_t input) const { return rows_[static_cast<std::size_t>(input)]; }

 private:
  struct Hash {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& key) const;
  };
  std::unordered_map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t, Hash> numbers_;
  std::vector<std::vector<std::uint32_t>> rows_;
};

struct KeptInput {
  std::int64_t input;
  std::uint64_t added;  // features it covers that those kept before it do not
};

// Greedy additional coverage: again and again the input that adds most, of equal ones the first. What each would add is
// kept up to date, and a gain never grows: the time is that of going through all inputs' features a few times. What
// remains covers every feature of the table.
std::vector<KeptInput> minimise(const FeatureTable& table);

}  // namespace galvani
