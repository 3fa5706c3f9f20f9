// What a network makes of an input deep inside, as one row of numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "galvani/model/network.h"

namespace galvani {

enum class FeatureForm {
  neurons,  // of a tap: a channel is its mean over space
  units,    // of a tap: every scalar
  input,    // every scalar that goes into the tap's layer
};

struct FeatureNeed {
  int tap = -1;
  FeatureForm form = FeatureForm::units;
  bool operator==(const FeatureNeed& other) const { return tap == other.tap && form == other.form; }
};

// "encoder": what goes into the first of the dense layers at the network's end. "penultimate": what goes into the last
// of them. Anything else is the name of a tap, whose units are meant. Networks that do not end in dense layers: the
// units of the last tap before the output.
FeatureNeed feature_of(const Network& network, const std::string& layer);
// For people: "input of fc1", "units of conv2".
std::string describe(const Network& network, const FeatureNeed& need);

// [n, width] float of what a pass gives: the tap's value in full, or what goes into its layer. [n, ...]
at::Tensor feature_rows(const Network& network, const FeatureNeed& need, const at::Tensor& value);

// [N, width] float of inputs as Network::run takes them. What is in which micro-batch depends on the inputs alone.
at::Tensor deep_features(Network& network, const FeatureNeed& need, const at::Tensor& inputs);

// [N] float: the cosine between row i of the one and row i of the other. Two rows of zeros are alike, one is like
// nothing.
at::Tensor cosines(const at::Tensor& a, const at::Tensor& b);

}  // namespace galvani
