// Small valid model files of every kind, made at run time, for the fuzzer to damage.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace galvani {

::onnx::NodeProto& add_node(::onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
                            const std::string& output);
void set_int(::onnx::NodeProto& node, const std::string& name, std::int64_t value);

std::vector<::onnx::ModelProto> zoo_seeds();

// Each operator case of Debian's libonnx-testdata; empty if that is not installed.
std::vector<std::filesystem::path> operator_cases();
// The operator of a case inside a model of images: its inputs become initialisers, the sum of its output is added to
// the logits, so that it is read, compiled and run.
::onnx::ModelProto operator_seed(const std::filesystem::path& folder);

// Keeps the weights in a file of their own, called `location`, whose bytes are returned.
std::string make_external(::onnx::ModelProto& model, const std::string& location);

// Archives as torch.jit.script and torch.jit.trace write them.
std::vector<std::string> torchscript_seeds();

std::string checkpoint_seed(const std::filesystem::path& folder);

}  // namespace galvani
