// What an ONNX graph becomes on its way to the executor: TorchScript source text plus the tensors it reads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace torch::jit {
struct Module;
}

namespace galvani::onnx {

struct Program {
  struct Port {
    std::string name;  // as the ONNX graph calls it
    at::ScalarType type;
    bool shaped = false;              // the file states a shape
    std::vector<std::int64_t> shape;  // -1 where the file leaves a dimension open
    bool sequence = false;            // a list of tensors, which only Ports::any gives
  };
  // A tensor of the module: attribute `attribute` of the compiled module holds initialiser `initializer` of the file
  // (or a Constant node's output, or an Identity of an initialiser). Empty for what was computed from constants at
  // import: such a tensor cannot be written back.
  struct Parameter {
    std::string attribute;
    std::string initializer;
    at::Tensor value;
    bool trainable;         // a weight that gradient descent may change; running statistics and constants are not
    at::ScalarType stored;  // as the file has it; `value` is of another type only if it was widened
  };

  std::string source;  // `def forward(self, ...)`, reads `self.training` where training differs from evaluation
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Parameter> parameters;
  // Variable of the source that holds an ONNX node's first output → the node's name (its output's where it has none).
  std::map<std::string, std::string> node_of_variable;
  std::int64_t opset = 0;
  std::int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, std::string> metadata;  // the file's metadata_props
  std::vector<std::string> warnings;            // such as NaN in a weight, naming the tensor
  bool half_input = false;                      // an input was float16 or bfloat16, before it was widened
  std::string external_sha256;                  // of what was read from files beside the model; empty: nothing
};

// What becomes of float16 and bfloat16: few kernels of a CPU take them.
enum class HalfTypes {
  kept,     // the program computes as the file says, wherever it has to by way of float32
  widened,  // weights, inputs and everything computed from them become float32
};

// What the graph's inputs and outputs may be.
enum class Ports { tensors, any };

// Parses and checks a model. `label` names the file in errors; external initialisers are read from `folder` only.
Program import_onnx(const std::string& bytes, const std::filesystem::path& folder, const std::string& label,
                    HalfTypes halves = HalfTypes::kept, Ports ports = Ports::tensors);

// Compiles the source into `module` and gives it copies of the parameters (training mode on). `forward` returns a
// tensor if the graph has one output, a tuple of tensors otherwise.
void build_module(const Program& program, const std::string& label, torch::jit::Module& module);

// The original file with new values for the named initialisers and new or changed metadata; everything else as it was,
// except that external tensors move into the file where it can hold them.
std::string update_onnx(const std::string& original, const std::filesystem::path& folder, const std::string& label,
                        const std::map<std::string, at::Tensor>& initializers,
                        const std::map<std::string, std::string>& metadata);

}  // namespace galvani::onnx
