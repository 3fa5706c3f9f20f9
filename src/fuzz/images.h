// Inputs of a campaign, checked against what was recorded. However the folder came here, nothing outside of it is read
// and nothing that blocks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "galvani/data/sample.h"
#include "galvani/fuzz/records.h"

namespace galvani {

// SHA-256 of the values of an input, as rows have it.
std::string pixel_hash(const at::Tensor& image);

// The bytes of a fault's file, which lies at `place` below the campaign's folder. Error(bad_input) if its name is not
// one that this program gives, if a step to it is a link, or if it is no regular file or far too large for an input of
// this type.
std::string fault_bytes(const std::filesystem::path& folder, const FaultRecord& fault,
                        const std::filesystem::path& place, const SampleType& type);

// The input in a file; Error(bad_input) naming `what` unless it is of this type and has these values.
at::Tensor verified_input(std::string_view file, const SampleType& type, const std::string& sha256,
                          const std::string& what);

}  // namespace galvani
