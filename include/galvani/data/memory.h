// Inputs that a program has in memory, under a name: `memory:NAME` is their spec, and what takes specs takes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "galvani/data/labels.h"
#include "galvani/data/sample.h"

namespace galvani {

inline constexpr const char* kMemoryData = "memory";

// values [N, ...type.shape] of type.dtype(), contiguous, not copied; `about.name` is the name: letters, digits and
// "._-". Takes the place of what had the name before, for those who open it from now on. Error(bad_input) unless all
// of it fits together.
void lend_data(const Labelled& about, const SampleType& type, const at::Tensor& values);
// Nothing happens if there is none of that name. Who has opened it keeps it.
void take_back_data(const std::string& name);

}  // namespace galvani
