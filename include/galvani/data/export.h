// Data sets written to files that our readers and other tools open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "galvani/data/view.h"

namespace galvani {

// Images that need not all be in memory at a time.
struct ImageStream {
  std::string name;                      // for messages
  std::vector<std::int64_t> labels;      // one an image, Dataset::kUnlabelled where unknown
  std::vector<std::string> class_names;  // may be empty
  // `count` images from `first` on, [count, C, H, W] uint8. They are asked for in order.
  std::function<at::Tensor(std::int64_t first, std::int64_t count)> images;
};
Dataset gather(const ImageStream& stream);  // all of them; Error(bad_input) if they do not fit the memory

// A new folder of PNG files 000000.png, ..., labels.csv (file,label) and, if there are class names, classes.txt.
// It appears when it is complete: until then it is called <folder>.incomplete-..., and our readers refuse it. An empty
// folder that exists is filled as it is; our readers refuse it, too, until it is complete.
// C must be 1 or 3. `also` may put more files into it.
void write_image_folder(const DataView& data, const std::filesystem::path& folder);
void write_image_folder(const ImageStream& stream, const std::filesystem::path& folder,
                        const std::function<void(const std::filesystem::path& folder)>& also = {});

// images [N,H,W] or [N,H,W,C] uint8 and, unless all are unknown, labels [N] int64.
void write_npz_dataset(const Dataset& data, const std::filesystem::path& path);

// `stem`-images-idx3-ubyte and `stem`-labels-idx1-ubyte in a folder; colour images have four axes (idx4).
// `stem` is "train" or "t10k" for files that readers of MNIST find.
void write_idx(const Dataset& data, const std::filesystem::path& folder, const std::string& stem);

}  // namespace galvani
