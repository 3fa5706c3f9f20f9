// Ensembles of trees as tensors, whichever of the three operators of ai.onnx.ml they come from.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/onnx/emit.h"

namespace galvani::onnx {

// Columns of a node. Modes 0 to 5 compare with the split (<=, <, >=, >, ==, !=), 6 looks among members, 7 is a leaf.
// Of a leaf begin and end are its votes, of a member node its members.
constexpr std::int64_t kTreeFeature = 0, kTreeMode = 1, kTreeYes = 2, kTreeNo = 3, kTreeMissing = 4, kTreeBegin = 5,
                       kTreeEnd = 6, kTreeColumns = 7;
constexpr std::int64_t kTreeMember = 6;
constexpr std::int64_t kTreeLeaf = 7;
// How the trees' votes are put together.
constexpr std::int64_t kTreesAverage = 0, kTreesSum = 1, kTreesMin = 2, kTreesMax = 3;

struct Trees {
  at::Tensor nodes;           // [nodes, kTreeColumns] int64
  at::Tensor splits;          // [nodes] double
  at::Tensor members;         // double
  at::Tensor roots;           // [trees] int64
  at::Tensor targets;         // [votes] int64
  at::Tensor weights;         // [votes] double
  std::int64_t features = 0;  // the highest that is read, plus 1
};

// Of TreeEnsembleClassifier (`votes` "class") and TreeEnsembleRegressor ("target").
Trees read_trees(const Node& node, const char* votes, std::int64_t outputs);
// Of TreeEnsemble, version 5 of the domain.
Trees read_tree_ensemble(const Node& node, std::int64_t outputs);

}  // namespace galvani::onnx
