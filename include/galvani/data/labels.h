// What is known of inputs besides their values: a name for the whole, a label each, names of the classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace galvani {

struct Labelled {
  static constexpr std::int64_t kUnlabelled = -1;
  static constexpr std::int64_t kMaxClasses = 1 << 20;

  std::string name;                      // the spec it was made from, such as "mnist:test[0:1000]"
  at::Tensor labels;                     // [N] int64, kUnlabelled where unknown
  std::vector<std::string> class_names;  // may be empty; else one for each label that can occur, all different
  std::vector<std::string> files = {};   // where each row came from within its source, "" if from no file; may be empty
  bool sorted_classes = false;           // classes are numbered by the alphabet, for nothing says another order
  // [N, K] float: what is right of each input where that is no class, such as an angle or a row of 0 and 1; undefined:
  // nobody said.
  at::Tensor answers = {};

  bool labelled() const;                             // there are inputs, and every one has a label
  std::int64_t classes() const;                      // number of class names, or the largest label + 1
  std::string class_name(std::int64_t label) const;  // its name, or the number as text
  std::string file(std::int64_t row) const;          // "" where there is none
};

// What is known of the rows at `indices` (in that order, repeats allowed).
Labelled subset_of(const Labelled& data, const std::vector<std::int64_t>& indices);

// Throws Error(bad_input) naming `data.name` unless labels and class names fit together.
void validate(const Labelled& data);

}  // namespace galvani
