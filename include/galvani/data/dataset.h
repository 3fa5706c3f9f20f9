// Labelled images as their files hold them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace galvani {

struct Dataset {
  static constexpr std::int64_t kUnlabelled = -1;

  std::string name;                      // the spec it was made from, such as "mnist:test[0:1000]"
  at::Tensor images;                     // [N, C, H, W] uint8 0..255, RGB order where C is 3
  at::Tensor labels;                     // [N] int64, kUnlabelled where unknown
  std::vector<std::string> class_names;  // may be empty; else one for each label that can occur

  std::int64_t size() const { return images.defined() ? images.size(0) : 0; }
  bool labelled() const;                       // every image has a label
  std::int64_t classes() const;                // number of class names, or the largest label + 1
  std::string class_name(std::int64_t label) const;  // its name, or the number as text
  Dataset subset(const std::vector<std::int64_t>& indices) const;
};

// Throws Error(bad_input) naming `data.name` unless shapes, types and labels fit together.
void validate(const Dataset& data);

// Loads what a spec names: `digits:train`, `mnist:test[0:1000]`, `folder/`, `images.npy`, ... (docs/data.md).
Dataset load_data(const std::string& spec);

}  // namespace galvani
