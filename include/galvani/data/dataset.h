// Labelled images as their files hold them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace galvani {

struct Dataset {
  static constexpr std::int64_t kUnlabelled = -1;
  static constexpr std::int64_t kMaxClasses = 1 << 20;

  std::string name;                      // the spec it was made from, such as "mnist:test[0:1000]"
  at::Tensor images;                     // [N, C, H, W] uint8 0..255, contiguous, RGB order where C is 3
  at::Tensor labels;                     // [N] int64, kUnlabelled where unknown
  std::vector<std::string> class_names;  // may be empty; else one for each label that can occur, all different

  std::int64_t size() const { return images.defined() ? images.size(0) : 0; }
  std::int64_t channels() const { return images.size(1); }
  std::int64_t height() const { return images.size(2); }
  std::int64_t width() const { return images.size(3); }
  bool labelled() const;                             // every image has a label
  std::int64_t classes() const;                      // number of class names, or the largest label + 1
  std::string class_name(std::int64_t label) const;  // its name, or the number as text
  // The images at `indices` (in that order, repeats allowed), labels and class names with them.
  Dataset subset(const std::vector<std::int64_t>& indices) const;
};

// Throws Error(bad_input) naming `data.name` unless shapes, types, labels and class names fit together.
void validate(const Dataset& data);

// SHA-256 of shape, pixels and labels.
std::string content_hash(const Dataset& data);

// One data set after the other. Shapes must agree; so must class names, where both have them.
Dataset concatenate(const std::vector<Dataset>& parts);

// Loads what a spec names: `digits:train`, `mnist:test[0:1000]`, `folder/`, `images.npy`, ... (docs/data.md).
// `default_split` is meant where a spec names none: "test" to evaluate, "train" to train.
Dataset load_data(const std::string& spec, const std::string& default_split = "test");

}  // namespace galvani
