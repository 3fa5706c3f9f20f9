// Which inputs a campaign starts from.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "galvani/data/dataset.h"
#include "galvani/fuzz/records.h"
#include "galvani/fuzz/settings.h"
#include "galvani/model/network.h"

namespace galvani {

struct Seeds {
  std::vector<SeedRecord> records;
  std::vector<at::Tensor> images;      // [C, H, W] uint8 each
  std::vector<WrongSeedRecord> wrong;  // drawn, but the model gets them wrong; by item
};

// Inputs in an order drawn by the settings' seed, until there are as many as they want that the model gets right (or
// any, if wrong ones are kept), or there are no more. Error(bad_input) if there is none at all.
Seeds choose_seeds(Network& network, const Dataset& data, const CampaignSettings& settings);

// Those of a campaign that was begun, as the first process reads them, and the names of the classes.
Seeds stored_seeds(const std::filesystem::path& folder, std::vector<std::string>& class_names);

// A name for every class of the model: its own, or the data's, or the number.
std::vector<std::string> class_names(const Network& network, const Dataset& data);

}  // namespace galvani
