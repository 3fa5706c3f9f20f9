// Where training stands, in a file that is either whole or refused.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "galvani/model/train.h"

namespace galvani {

struct Checkpoint {
  std::string settings;    // what must be the same to go on, one "key = value" a line
  std::int64_t epoch = 0;  // epochs completed
  std::int64_t step = 0;   // batches completed of the next one
  std::int64_t updates = 0;
  double loss_sum = 0;  // of that epoch so far
  std::int64_t correct = 0;
  std::int64_t seen = 0;
  std::int64_t best_epoch = 0;
  std::string stopped;  // why training ended before its last epoch, or empty
  std::vector<EpochReport> reports;
  std::vector<at::Tensor> tensors;  // parameters, statistics, the optimizer's memory, the best epoch's weights
};

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
// Refuses a damaged file.
Checkpoint load_checkpoint(const std::filesystem::path& path);

// The first line in which two settings differ, as "batch = 64 there, batch = 128 now"; empty if none does.
std::string difference(const std::string& there, const std::string& now);

}  // namespace galvani
