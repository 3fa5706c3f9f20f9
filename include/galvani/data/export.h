// Data sets written to files that our readers and other tools open.
#pragma once

#include <filesystem>
#include <string>

#include "galvani/data/dataset.h"

namespace galvani {

// A new folder of PNG files 000000.png, ..., labels.csv (file,label) and, if there are class names, classes.txt.
// It appears when it is complete. C must be 1 or 3.
void write_image_folder(const Dataset& data, const std::filesystem::path& folder);

// images [N,H,W] or [N,H,W,C] uint8 and, unless all are unknown, labels [N] int64.
void write_npz_dataset(const Dataset& data, const std::filesystem::path& path);

// `stem`-images-idx3-ubyte and `stem`-labels-idx1-ubyte in a folder; colour images have four axes (idx4).
// `stem` is "train" or "t10k" for files that readers of MNIST find.
void write_idx(const Dataset& data, const std::filesystem::path& folder, const std::string& stem);

}  // namespace galvani
