// The flags of every verb that runs a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flags.h"
#include "galvani/data/dataset.h"
#include "galvani/model/network.h"

namespace galvani::cli {

struct ModelFlags {
  std::string model;
  std::string taps = "default";
  Network::Options options;

  void add_to(Verb& verb, bool required = true);
  void add_preprocessing(Verb& verb);  // all but the model itself
  // `data` helps a TorchScript file that does not state its input; may be null.
  std::unique_ptr<Network> load(const Dataset* data);
};

std::string join_shape(const std::vector<std::int64_t>& shape);  // "3x32x32"

}  // namespace galvani::cli
