// What the converters of image classifiers share.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "galvani/model/card.h"
#include "model/onnx/writer.h"

namespace galvani {

// Rows or columns that are added before and after, and what a window then leaves.
struct Padding {
  std::int64_t before = 0;
  std::int64_t after = 0;
};
// TensorFlow's "SAME": as much as makes the result ceil(side / stride) long, the odd one at the end.
Padding same_padding(std::int64_t side, std::int64_t kernel, std::int64_t stride);
std::int64_t windowed_side(std::int64_t side, std::int64_t kernel, std::int64_t stride, Padding padding);

// The two pairs of ImageNet's classes that share a name get names of their own: crane (the bird comes first) and
// maillot (the tank suit second).
std::vector<std::string> distinct_imagenet_names(std::vector<std::string> names);

// The names that layers of a file may have: each once, and without the marks that names of ours are made with.
class LayerNames {
 public:
  explicit LayerNames(const std::string& label) : label_(label) {}
  void add(const std::string& name);  // Error(bad_input)

 private:
  const std::string& label_;
  std::set<std::string> known_ = {"input", "logits"};
};

// Puts the card into the file and gives its bytes.
std::string finish_classifier(onnx::GraphWriter& writer, const ModelCard& card);

}  // namespace galvani
