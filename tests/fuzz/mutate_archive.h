// Damage inside a TorchScript archive: one record changes, the zip around it stays sound, checksums included.
#pragma once

#include <string>

#include "galvani/base/rng.h"

namespace galvani {

std::string mutate_archive(const std::string& bytes, Rng& rng);

}  // namespace galvani
