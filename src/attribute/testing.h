// Networks whose neurons are known, for tests.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>

#include "galvani/base/error.h"
#include "galvani/model/network.h"

namespace galvani::testing {

// A TorchScript model, loaded back from a file. `body` are the lines of `forward(self, x)`.
std::unique_ptr<Network> scripted_network(const std::string& body, const std::map<std::string, at::Tensor>& parameters,
                                          const std::vector<std::int64_t>& input, const Network::Options& options);

// x → I₃x → ones(4x3)x + [-10,1,1,1] → ReLU → ones(2x4)x + [-1,1], as others publish it; pixels are seen as they are.
std::unique_ptr<Network> published_network(std::int64_t micro_batch);

// A zoo architecture with random weights and 10 classes.
std::unique_ptr<Network> zoo_network(const std::string& spec, const std::vector<std::int64_t>& input,
                                     std::int64_t micro_batch = 16);

// Repeatable noise, [n, ...input] uint8.
at::Tensor random_images(const Network& network, std::int64_t n);

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
