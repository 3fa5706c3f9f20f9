// Images of a campaign, checked against what was recorded. However the folder came here, nothing outside of it is read
// and nothing that blocks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "galvani/fuzz/records.h"

namespace galvani {

// SHA-256 of [C, H, W] uint8 pixels, as rows have it.
std::string pixel_hash(const at::Tensor& image);

// The bytes of a fault's file, which lies at `place` below the campaign's folder, for images of so many bytes.
// Error(bad_input) if its name is not one that this program gives, if a step to it is a link, or if it is no regular
// file or far too large.
std::string fault_png(const std::filesystem::path& folder, const FaultRecord& fault, const std::filesystem::path& place,
                      std::size_t image_bytes);

// The image of a PNG; Error(bad_input) naming `what` unless it has this shape ("1,28,28") and these pixels.
at::Tensor verified_image(std::string_view png, const std::string& shape, const std::string& sha256,
                          const std::string& what);

}  // namespace galvani
