// A contact sheet: some inputs of every class on one page.
#pragma once

#include <filesystem>

#include "galvani/data/view.h"

namespace galvani {

// Writes a PNG with one row a class, labelled, evenly spaced samples of the class in it; unlabelled ones fill a
// grid. Sounds are drawn as waveform and spectrogram.
void write_sheet(const DataView& data, const std::filesystem::path& path);

}  // namespace galvani
