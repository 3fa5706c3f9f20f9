// Tests to repair with, and which of them training may see: those of a seed are all on one side.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "galvani/data/dataset.h"
#include "galvani/model/network.h"

namespace galvani {

struct FoundTests {
  Dataset images;                  // with what is right for each, and the file it came from
  std::vector<std::string> seeds;  // what each was made of: SHA-256 of its pixels; of a test without a seed, its own
  std::vector<double> changes;     // how far each is from it: root mean square, 1 is full scale; NaN: not known
  std::int64_t left_out = 0;       // more of a seed than were wanted

  std::int64_t size() const { return images.size(); }
  std::int64_t seed_count() const;
  FoundTests subset(const std::vector<std::int64_t>& rows) const;
};

// Error(bad_input) for a network of sounds.
void check_repairable(const Network& network);

// What `where` names: a campaign's folder, of which distinct faults are taken, a table of picks in which labels were
// filled (`galvani select -o`), or data with labels. At most `per_seed`
// of a seed, in the order in which they were found (0: all). Error(bad_input) if there is none, or it does not fit the
// network.
FoundTests read_tests(const Network& network, const std::string& where, std::int64_t per_seed);

// One after the other.
FoundTests join(const std::vector<FoundTests>& parts);

// Which seeds are held out, of all that occur: about `share`, at least one on each side. Error(bad_input) if there is
// only one seed.
std::set<std::string> hold_out_seeds(const std::vector<FoundTests>& tests, double share, std::uint64_t seed);

// The rows of a test whose seed is, or is not, among `seeds`.
std::vector<std::int64_t> rows_of_seeds(const FoundTests& tests, const std::set<std::string>& seeds, bool among);

// SHA-256 of an input's values.
std::string pixels_of(const at::Tensor& input);

}  // namespace galvani
