// Two versions of a network on the same inputs: which inputs got worse?
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/data/view.h"
#include "galvani/model/network.h"

namespace galvani {

enum class Flip {
  none,         // the verdict is the same
  newly_wrong,  // it was right
  newly_right,
  other,  // it changed, but both are wrong, or nobody knows what is right
};
const char* to_string(Flip flip);

// What one of the two says.
struct DiffSide {
  std::string model;      // file
  at::Tensor predicted;   // [N] int64, by the old network's numbers of classes; kNotANumber where there is none
  at::Tensor confidence;  // [N] float
};

struct ClassFlips {
  std::string name;
  std::int64_t inputs = 0;
  std::int64_t right_before = 0, right_after = 0;
  std::int64_t newly_wrong = 0, newly_right = 0;
};

struct Diff {
  std::string data;
  std::vector<std::string> inputs;   // files, or numbers where there are none
  std::vector<std::string> classes;  // names
  at::Tensor labels;                 // [N] int64, below 0 where unknown
  DiffSide before, after;
  std::vector<Flip> flips;  // [N]
  std::int64_t labelled = 0;
  double p = 1;  // of a sign test on the flips of labelled inputs: as many in each direction?

  std::int64_t size() const { return static_cast<std::int64_t>(flips.size()); }
  std::int64_t count(Flip flip) const;
  std::int64_t right(const DiffSide& side) const;
  std::vector<std::int64_t> rows(Flip flip) const;
  std::string verdict(std::int64_t predicted) const;  // its name
  std::string line(std::int64_t row) const;           // "cat7.png: is cat, cat (0.91) → dog (0.55)"
  std::vector<ClassFlips> by_class() const;           // those that have labelled inputs
};

// Each network has a view of the same data, made to fit it. Classes are matched by name where both networks name them.
// Error(bad_input) unless they are the same classes.
Diff diff_networks(Network& before, const DataView& data_before, Network& after, const DataView& data_after);

// inputs, agreement, flips; of labelled data also accuracy-old, accuracy-new, negative-flips, positive-flips; flips as
// numbers and as shares ("negative-flips%").
Figures figures_of(const Diff& diff);

// A line for every input: its file or number, label, what both say, how sure they are, the flip.
std::string diff_csv(const Diff& diff);

// One HTML page that needs nothing else: the figures, classes, pictures of the inputs that flipped.
std::string diff_page(const Diff& diff, const DataView& data);

}  // namespace galvani
