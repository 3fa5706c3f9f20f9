// Tensors as safetensors files hold them: a length, a JSON header with names, types, shapes and places, then the bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace galvani {

class SafeTensors {
 public:
  // Checks everything the header says against the bytes, which must outlive this. `label` names the file in errors.
  SafeTensors(std::string_view bytes, std::string label);

  std::size_t size() const { return places_.size(); }
  bool has(const std::string& name) const { return places_.count(name) > 0; }
  std::vector<std::int64_t> shape(const std::string& name) const;
  // A copy in float32; Error(bad_input) if it is not there or has another shape.
  at::Tensor get(const std::string& name, const std::vector<std::int64_t>& shape) const;

 private:
  struct Place {
    at::ScalarType type;
    std::vector<std::int64_t> shape;
    std::size_t begin;  // in data_
  };
  const Place& place(const std::string& name) const;

  std::string label_;
  std::string_view data_;
  std::map<std::string, Place> places_;
};

}  // namespace galvani
