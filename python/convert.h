// Between Python's values and ours.
#pragma once

#include <ATen/core/Tensor.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "galvani/base/json.h"
#include "galvani/base/options.h"
#include "galvani/model/network.h"

namespace galvani::python {

namespace py = pybind11;

// While one lives, the calling thread works without the interpreter: the GIL is released, kernels run on one thread as
// everywhere in Galvani, and Ctrl-C ends the work with Error(interrupted). One thread works at a time; what Python code
// does on behalf of work that is going on belongs to it.
class Work {
 public:
  Work();
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  struct Outermost;
  std::optional<py::gil_scoped_release> released_;
  std::unique_ptr<Outermost> outermost_;
  bool locked_ = false;
};

// Around Python code that work calls, from any thread.
class Callback {
 public:
  Callback();
  ~Callback();
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

 private:
  py::gil_scoped_acquire acquired_;
  bool outer_;
};

py::object to_python(const Json& value);

// The same memory, which lives as long as the array does. An undefined tensor is None.
py::object to_array(const at::Tensor& tensor);
// The same memory, which lives as long as the tensor does. `what` is named in errors: a type without a tensor of its
// own, strides that go backwards or between elements.
at::Tensor to_tensor(const py::array& array, const std::string& what);
// Inputs as networks take them, [N, ...]: uint8 or float32 images, int16 or float32 sounds, one at least and all of
// them finite; contiguous, which may take a copy.
at::Tensor to_inputs(const py::array& array, const std::string& what);
// [N] int64 of any array of whole numbers.
at::Tensor to_labels(const py::array& array, const std::string& what);

// One file each.
void bind_work(py::module_& module);
void bind_data(py::module_& module);
void bind_network(py::module_& module);
void bind_campaign(py::module_& module);
void bind_components(py::module_& module);
void bind_verbs(py::module_& module);

}  // namespace galvani::python
