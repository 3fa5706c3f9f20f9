// One image made into an input of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/data/intake.h"
#include "image_file.h"

namespace galvani {

// Usage error unless the settings give exactly images of `shape` [C, H, W], C 1 or 3.
void check_intake(const Intake& intake, const std::vector<std::int64_t>& shape);

// Writes `shape` bytes. Error(bad_input) naming `what` if the image is smaller than what is to be cut out.
void fit_image(const Image& image, const Intake& intake, const std::vector<std::int64_t>& shape, std::uint8_t* out,
               const std::string& what);

}  // namespace galvani
