// A contact sheet of mutators: what each does to an image.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "galvani/data/dataset.h"
#include "galvani/mutate/engine.h"

namespace galvani {

struct SheetRow {
  std::int64_t image = 0;  // of the data
  std::string mutator;
  std::vector<Rule> rules;
  std::vector<bool> valid;  // within `Validity` of the image
};

// A row for every family of the set, every row with another image, `columns` mutants each.
std::vector<SheetRow> arrange_mutants(const MutatorSet& set, const Dataset& data, std::size_t columns, Rng rng);

// Writes a PNG: the original, then the mutants with their parameters below; those that are not valid are framed.
void write_mutant_sheet(const MutatorSet& set, const Dataset& data, const std::vector<SheetRow>& rows,
                        const std::filesystem::path& path);

}  // namespace galvani
