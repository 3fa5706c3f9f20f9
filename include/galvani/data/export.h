// Data sets written to files that our readers and other tools open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "galvani/data/view.h"

namespace galvani {

// A new folder of PNG or WAV files 000000.png, ..., labels.csv (file,label) and, if there are class names, classes.txt.
// It appears when it is complete: until then it is called <folder>.incomplete-..., and our readers refuse it. An empty
// folder that exists is filled as it is; our readers refuse it, too, until it is complete.
// Images must have 1 or 3 channels. `also` may put more files into it. Rows are asked for in order.
void write_sample_folder(const DataView& data, const std::filesystem::path& folder,
                         const std::function<void(const std::filesystem::path& folder)>& also = {});

// images [N,H,W] or [N,H,W,C] uint8 and, unless all are unknown, labels [N] int64.
void write_npz_dataset(const Dataset& data, const std::filesystem::path& path);

// `stem`-images-idx3-ubyte and `stem`-labels-idx1-ubyte in a folder; colour images have four axes (idx4).
// `stem` is "train" or "t10k" for files that readers of MNIST find.
void write_idx(const Dataset& data, const std::filesystem::path& folder, const std::string& stem);

}  // namespace galvani
