#include "convert.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "galvani/base/error.h"

namespace galvani::python {
namespace {

// Lets go of an array from whatever thread the tensor ends in.
void let_go(py::array* array) {
  // The interpreter may have ended before us.
  if (Py_IsInitialized() == 0) return;
  py::gil_scoped_acquire acquired;
  delete array;
}

std::optional<at::ScalarType> scalar_type(const py::dtype& type) {
  if (type.attr("isnative").cast<bool>()) {
    switch (type.num()) {
      case py::detail::npy_api::NPY_BOOL_:
        return at::kBool;
      case py::detail::npy_api::NPY_UBYTE_:
        return at::kByte;
      case py::detail::npy_api::NPY_BYTE_:
        return at::kChar;
      case py::detail::npy_api::NPY_SHORT_:
        return at::kShort;
      case py::detail::npy_api::NPY_INT_:
        return at::kInt;
      case py::detail::npy_api::NPY_LONG_:
      case py::detail::npy_api::NPY_LONGLONG_:
        return at::kLong;
      case py::detail::npy_api::NPY_FLOAT_:
        return at::kFloat;
      case py::detail::npy_api::NPY_DOUBLE_:
        return at::kDouble;
      default:
        break;
    }
  }
  return std::nullopt;
}

const char* numpy_name(at::ScalarType type) {
  switch (type) {
    case at::kBool:
      return "bool";
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    default:
      fail(ErrorCode::internal, "NumPy has no type for {}", c10::toString(type));
  }
}

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("({})", fmt::join(tensor.sizes(), ", "));
}

// Some rows at a time, for the answers take memory, too.
void check_finite(const at::Tensor& inputs, const std::string& what) {
  constexpr std::int64_t kRows = 256;
  for (std::int64_t first = 0; first < inputs.size(0); first += kRows) {
    at::Tensor rows = inputs.narrow(0, first, std::min(kRows, inputs.size(0) - first));
    at::Tensor finite = rows.isfinite().flatten(1).all(1);
    if (!finite.all().item<bool>())
      bad_input("{}: input {} has values that are NaN or infinite", what,
                first + finite.logical_not().nonzero()[0].item<std::int64_t>());
  }
}

}  // namespace

py::object to_python(const Json& value) {
  return std::visit(
      [](const auto& held) -> py::object {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::nullptr_t>) {
          return py::none();
        } else if constexpr (std::is_same_v<T, Json::Array>) {
          py::list list(held.size());
          for (std::size_t i = 0; i < held.size(); ++i) list[i] = to_python(held[i]);
          return std::move(list);
        } else if constexpr (std::is_same_v<T, Json::Object>) {
          py::dict dict;
          for (const auto& [key, element] : held) dict[py::str(key)] = to_python(element);
          return std::move(dict);
        } else if constexpr (std::is_same_v<T, std::string>) {
          // Paths and names need not be UTF-8; Python keeps such bytes as it does those of paths.
          PyObject* text = PyUnicode_DecodeFSDefaultAndSize(held.data(), static_cast<Py_ssize_t>(held.size()));
          if (text == nullptr) throw py::error_already_set();
          return py::reinterpret_steal<py::object>(text);
        } else {
          return py::cast(held);
        }
      },
      value.value());
}

py::object to_array(const at::Tensor& tensor) {
  if (!tensor.defined()) return py::none();
  auto* held = new at::Tensor(tensor.detach());
  py::capsule owner(held, [](void* pointer) { delete static_cast<at::Tensor*>(pointer); });
  std::vector<py::ssize_t> shape(held->sizes().begin(), held->sizes().end());
  std::vector<py::ssize_t> strides;
  for (std::int64_t stride : held->strides()) strides.push_back(stride * held->element_size());
  return py::array(py::dtype(numpy_name(held->scalar_type())), shape, strides, held->data_ptr(), owner);
}

at::Tensor to_tensor(const py::array& array, const std::string& what) {
  std::optional<at::ScalarType> type = scalar_type(array.dtype());
  if (!type)
    bad_input("{}: has values of type {}, which is none that is taken", what,
              py::str(array.dtype()).cast<std::string>());
  std::vector<std::int64_t> shape(array.shape(), array.shape() + array.ndim());
  std::vector<std::int64_t> strides;
  std::int64_t size = array.itemsize();
  bool aligned = reinterpret_cast<std::uintptr_t>(array.data()) % static_cast<std::uintptr_t>(size) == 0;
  for (py::ssize_t i = 0; i < array.ndim(); ++i) {
    std::int64_t stride = array.strides(i);
    if (array.size() > 0 && array.shape(i) > 1 && (stride < 0 || stride % size != 0 || !aligned))
      bad_input("{}: its values do not lie in memory one after the other; numpy.ascontiguousarray makes such an array",
                what);
    strides.push_back(std::max<std::int64_t>(stride, 0) / size);
  }
  if (!aligned) bad_input("{}: its values are not aligned; numpy.ascontiguousarray makes such an array", what);
  auto* held = new py::array(array);
  return at::from_blob(
      const_cast<void*>(array.data()), shape, strides, [held](void*) { let_go(held); }, at::TensorOptions(*type));
}

at::Tensor to_inputs(const py::array& array, const std::string& what) {
  at::Tensor inputs = to_tensor(array, what);
  bool sounds = inputs.dim() == 3 && inputs.scalar_type() != at::kByte;
  if (inputs.dim() != 4 && !sounds)
    bad_input("{}: has shape {}, but must be (N, C, H, W), or (N, channels, length) of sounds", what,
              shape_text(inputs));
  if (inputs.size(0) == 0) bad_input("{}: there are no inputs in it", what);
  at::ScalarType whole = sounds ? at::kShort : at::kByte;
  if (inputs.scalar_type() != whole && inputs.scalar_type() != at::kFloat)
    bad_input("{}: is of type {}, but must be {}, or float32 on the same scale of {}", what,
              numpy_name(inputs.scalar_type()), numpy_name(whole), sounds ? "-32768 to 32767" : "0 to 255");
  if (inputs.is_floating_point()) check_finite(inputs, what);
  return inputs.contiguous();
}

at::Tensor to_labels(const py::array& array, const std::string& what) {
  at::Tensor labels = to_tensor(array, what);
  if (labels.dim() != 1) bad_input("{}: has shape {}, but must be (N,)", what, shape_text(labels));
  if (labels.is_floating_point() || labels.scalar_type() == at::kBool)
    bad_input("{}: is of type {}, but labels are whole numbers", what, numpy_name(labels.scalar_type()));
  return labels.to(at::kLong).contiguous();
}

}  // namespace galvani::python
