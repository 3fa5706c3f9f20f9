// Small networks for tests.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/model/network.h"

namespace galvani::testing {

// A zoo architecture with random weights for 1x28x28 (LeNets) or 3x32x32 images and 10 classes.
std::unique_ptr<Network> zoo_network(const std::string& spec, Execution execution = {16, false});

// How `scripted` loads: in micro-batches of 16, for 3x8x8 images.
Network::Options script_options();
// A TorchScript model, loaded back from a file: the source defines `forward`.
std::unique_ptr<Network> scripted(const std::string& source, const std::map<std::string, at::Tensor>& parameters,
                                  const Network::Options& options = script_options());

// A cache folder of its own for as long as it lives.
class OwnCache {
 public:
  OwnCache();
  ~OwnCache();
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
  std::string before_;
};

// Repeatable noise, [n, C, H, W] uint8.
at::Tensor random_images(const Network& network, std::int64_t n);

// The message of the galvani::Error that `action` throws; empty if it throws none.
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
