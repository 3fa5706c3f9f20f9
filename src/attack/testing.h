// Networks whose smallest adversarial changes are known, and others that attacks meet, for tests.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>

#include "galvani/attack/attack.h"
#include "galvani/base/error.h"

namespace galvani::testing {

// A TorchScript model, loaded back from a file. `body` are the lines of `forward(self, x)`.
std::unique_ptr<Network> scripted_network(const std::string& body, const std::map<std::string, at::Tensor>& parameters,
                                          const std::vector<std::int64_t>& input = {3, 8, 8});

// Scores that are linear in the pixels, random weights, and images whose pixels are far from 0 and 255, so that the
// range is in nobody's way. The labels are what the network says.
struct LinearCase {
  // The pixels lean so many grey levels to the weights of one class: 25 makes the smallest change some twenty levels
  // everywhere, 0 less than one.
  LinearCase(std::int64_t classes, std::int64_t n, double lean = 25);
  // [N] double: distance to the nearest boundary, full scale = 1: margin / ‖w‖₂ for L2, margin / ‖w‖₁ for L∞.
  at::Tensor smallest(Norm norm) const;

  at::Tensor weight, bias;  // of bytes over 255: [classes, 192], [classes]
  std::unique_ptr<Network> network;
  at::Tensor images;  // [N, 3, 8, 8] uint8
  at::Tensor labels;
};

// A LeNet-1 with random weights, digits, and its own verdicts as labels; the first two are given another label, so that
// they are wrong from the start.
struct DigitsCase {
  explicit DigitsCase(std::int64_t n);

  std::unique_ptr<Network> network;
  at::Tensor images;
  at::Tensor labels;
};

AttackTask task_of(const at::Tensor& inputs, const at::Tensor& labels, std::uint64_t seed = 1);
Attacked attacked(Network& network, const std::string& spec, const AttackTask& task);

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace galvani::testing
