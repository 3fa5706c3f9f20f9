// Which inputs a campaign starts from.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/data/dataset.h"
#include "galvani/fuzz/records.h"
#include "galvani/model/network.h"

namespace galvani {

struct Seeds {
  std::vector<SeedRecord> records;
  std::vector<at::Tensor> images;      // [C, H, W] uint8 each
  std::vector<WrongSeedRecord> wrong;  // drawn, but the model gets them wrong; by item
};

// Inputs in an order drawn by `seed`, until `count` that the model gets right are found or there are no more.
// Error(bad_input) if there is none at all.
Seeds choose_seeds(Network& network, const Dataset& data, std::int64_t count, std::uint64_t seed);

// A name for every class of the model: its own, or the data's, or the number.
std::vector<std::string> class_names(const Network& network, const Dataset& data);

}  // namespace galvani
