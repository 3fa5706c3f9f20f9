// An ONNX graph run as it is: any number of inputs and outputs of any type. For encoders of text and other graphs that
// take no image; Network is for those that do.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace galvani {

class OnnxGraph {
 public:
  struct Port {
    std::string name;
    at::ScalarType type;
    bool shaped = false;              // the file states a shape
    std::vector<std::int64_t> shape;  // -1 where it leaves a dimension open
  };

  static std::unique_ptr<OnnxGraph> load(const std::filesystem::path& path);
  // A model in memory; `label` stands for the file name.
  static std::unique_ptr<OnnxGraph> from_bytes(const std::string& bytes, const std::string& label);
  ~OnnxGraph();

  const std::string& path() const;
  const std::string& sha256() const;  // of the file, and of external data that it names
  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;

  // One tensor for each input, in their order, of its type; gives one for each output. float16 weights compute in
  // float32. Error(bad_input) if the graph does not take them. May be called by several threads.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

  struct Impl;

 private:
  explicit OnnxGraph(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace galvani
