// Damage to what an ONNX graph computes: nodes of every operator put between others, wires moved, arguments invented.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <vector>

#include "galvani/base/rng.h"

namespace galvani {

// Nodes of every supported operator, with the attributes and the number of inputs it has, from the cases given.
class NodePool {
 public:
  explicit NodePool(const std::vector<std::filesystem::path>& cases);

  // One to three of: a node of the pool inserted, its inputs drawn from the graph's values and from new constants, its
  // output read by a later node; an input rewired; two nodes exchanged; the input's sizes changed; a subgraph or a
  // function nested in itself.
  void graft(::onnx::ModelProto& model, Rng& rng) const;

 private:
  void insert_node(::onnx::GraphProto& graph, Rng& rng) const;

  std::vector<::onnx::NodeProto> nodes_;
};

}  // namespace galvani
