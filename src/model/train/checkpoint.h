// Where training stands, in a file that is either whole or refused.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "galvani/model/trainer.h"

namespace galvani {

struct Checkpoint {
  std::string settings;  // what must be the same to go on, one "key = value" a line
  TrainState state;
  std::vector<at::Tensor> tensors;  // weights and the optimizers' memory
};

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
// Refuses a damaged file.
Checkpoint load_checkpoint(const std::filesystem::path& path);

// The first line in which two settings differ, as "batch = 64 there, batch = 128 now"; empty if none does.
std::string difference(const std::string& there, const std::string& now);

}  // namespace galvani
