// Why a network decided as it did: the decision paths of inputs, drawn.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/model/network.h"
#include "galvani/semantics/path.h"

namespace galvani {

// The neuron of one layer that most of the score flows through.
struct ExplainedStep {
  std::string tap;
  std::int32_t neuron = 0;
  std::string words;
  bool sure = false;
  double share = 0;   // of the score's rise from the baseline that flows through it
  double whole = 0;   // the same of all its layer's neurons: 1 where nothing goes around the layer
  at::Tensor heat;    // [H, W] float of the image's size: its values, the least 0 and the largest 1; undefined: no map
  at::Tensor active;  // [H, W] bool: above its threshold
};

struct Explanation {
  at::Tensor image;  // [C, H, W] uint8
  std::string name;
  std::string made_by;  // rules, of a mutant
  std::int64_t verdict = 0;
  std::string verdict_name;
  double confidence = 0;
  std::int64_t target = 0;  // whose score was followed
  std::string target_name;
  DecisionPath path;
  std::vector<ExplainedStep> steps;
  std::string text;  // the path in words
};

// images [N, C, H, W] uint8; targets [N] int64, negative: the verdict.
std::vector<Explanation> explain(Network& network, PathFinder& finder, const at::Tensor& images,
                                 const std::vector<std::string>& names, const at::Tensor& targets);

// Where two paths part: the first layer whose neurons differ; none: -1.
std::int64_t parting(const Explanation& a, const Explanation& b);

struct ExplainPicture {
  std::string title;
  std::vector<Explanation> rows;  // of one finder; two of them are compared
  double similarity = 0;          // of those two
  bool compared = false;
};
enum class PictureFormat { png, svg, html };
std::string draw(const ExplainPicture& picture, PictureFormat format);

}  // namespace galvani
