// What verbs that train measure on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "galvani/data/dataset.h"

namespace galvani::cli {

// Where a training that will be written to `output` keeps its state: beside it; empty for devices and FIFOs, which
// nothing lies beside.
std::string checkpoint_beside(const std::string& output);

// A tenth of the data, drawn by the seed and taken out of it.
Dataset hold_out(Dataset& data, std::uint64_t seed);

// What the user says, the test split of the known data set that `spec` names, or a tenth held out of the training data.
Dataset measuring_data(const std::string& said, const std::string& spec, Dataset& data, std::uint64_t seed,
                       const std::function<Dataset(const std::string& spec)>& load);

}  // namespace galvani::cli
