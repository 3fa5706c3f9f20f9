// Files of a campaign's folder, however the folder came here: nothing outside of it is read, and nothing that blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "galvani/fuzz/records.h"

namespace galvani {

// The bytes of a file below `folder`. Error(bad_input) if a step of `relative` is a link, leads upwards or is absolute,
// or if it is no regular file or one of more than `limit` bytes.
std::string read_contained(const std::filesystem::path& folder, const std::filesystem::path& relative,
                           std::uint64_t limit);

// Whether a fault's file has a name that this program gives: its own, or that of an earlier fault with the same image.
bool names_own_file(const FaultRecord& fault);

}  // namespace galvani
