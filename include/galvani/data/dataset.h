// Labelled images or sounds as their files hold them, all of them in memory. What can do with some rows at a time takes
// a DataView.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/data/labels.h"
#include "galvani/data/sample.h"

namespace galvani {

struct Dataset : Labelled {
  // [N, C, H, W] uint8 0..255, RGB order where C is 3; of sounds [N, channels, length] int16. Contiguous.
  at::Tensor images;
  std::int64_t rate = 0;  // of sounds: samples a second

  std::int64_t size() const { return images.defined() ? images.size(0) : 0; }
  std::int64_t channels() const { return images.size(1); }
  std::int64_t height() const { return images.size(2); }
  std::int64_t width() const { return images.size(3); }
  SampleType type() const;
  // The inputs at `indices` (in that order, repeats allowed), labels and class names with them.
  Dataset subset(const std::vector<std::int64_t>& indices) const;
};

// Throws Error(bad_input) naming `data.name` unless shapes, types, labels and class names fit together.
void validate(const Dataset& data);

// Loads what a spec names: `digits:train`, `mnist:test[0:1000]`, `folder/`, `images.npy`, ... (docs/data.md).
// `default_split` is meant where a spec names none: "test" to evaluate, "train" to train.
Dataset load_data(const std::string& spec, const std::string& default_split = "test");

}  // namespace galvani
