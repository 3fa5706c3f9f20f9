// What a campaign found as files that other tools open, and every verb's --data.
#pragma once

#include <cstdint>
#include <filesystem>

#include "galvani/fuzz/reader.h"

namespace galvani {

enum class ExportForm {
  folder,  // PNG files, labels.csv, mutants.csv
  npz,     // images, labels, predicted, confidence, id, seed, fault
  csv,     // a table with lineages, no images
};

struct ExportOptions {
  ExportForm form = ExportForm::folder;
  bool outputs = false;   // every mutant that was kept instead of the faults
  bool distinct = false;  // identical images of one class only once
  bool kept = false;      // of the faults, those that the guide kept
};

// Returns how many were written; with none there is no file. With a progress bar; Ctrl-C is honoured.
std::int64_t export_campaign(const CampaignReader& reader, const ExportOptions& options,
                             const std::filesystem::path& output);

}  // namespace galvani
