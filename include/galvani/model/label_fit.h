// Labels that mean other classes than the network's: shifted by one, or in another order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace galvani {

struct LabelFit {
  std::int64_t shift = 0;              // the network's class is the label + shift; 0: classes_of says it
  std::vector<std::int64_t> class_of;  // of each label, -1 where nothing says which; empty with a shift
  double as_they_are = 0;              // the accuracy without
  double accuracy = 0;                 // and with it, on inputs that it was not taken from
};

// What would make far more of the labels right, if something does. `seen` and `held_out` [classes, classes] int64: rows
// are labels, columns predicted classes, of two parts of the inputs drawn apart from each other. An order is taken
// from the first part and judged on the second, so that what fits few inputs by chance is not taken for one.
std::optional<LabelFit> fit_labels(const at::Tensor& seen, const at::Tensor& held_out);

// The same of verdicts, [N] int64 each: labels from 0, verdicts as in evaluate.h.
std::optional<LabelFit> fit_labels(const at::Tensor& labels, const at::Tensor& verdicts, std::int64_t classes);

// Which part an input counts in: true is held out. Half of the inputs, whatever order they come in.
at::Tensor held_out_rows(std::int64_t first, std::int64_t count);  // [count] int64 0 or 1

// "98.10% if the network's class is the label + 1 (...): --label-shift 1". `names` are those of the data's classes, if
// any.
std::string remedy_text(const LabelFit& fit, const std::vector<std::string>& names);

}  // namespace galvani
