// faults/NNNNNNNN-<true>-<predicted>.png, or -nan.png where the verdict is not a number
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "galvani/mutate/mutator.h"

namespace galvani {

// Relative to the campaign's folder.
std::string fault_file(std::int64_t id, std::int64_t label, std::int64_t predicted);

// As it is kept in files and in the store.
std::string encode_mutant(const std::uint8_t* pixels, const ImageShape& shape);

// Writes the PNG and reads it back: Error(environment) unless the file now holds exactly these pixels. A file that
// already does is left alone.
void write_fault_file(const std::filesystem::path& path, std::string_view png, const std::uint8_t* pixels,
                      const ImageShape& shape);

// Files of faults that were never stored, left by a process that was killed: those with numbers above `last`.
void remove_orphans(const std::filesystem::path& folder, std::int64_t last);

}  // namespace galvani
