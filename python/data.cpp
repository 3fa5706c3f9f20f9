#include <ATen/ATen.h>
#include <pybind11/stl.h>

#include "convert.h"
#include "galvani/base/error.h"
#include "galvani/data/memory.h"
#include "galvani/data/view.h"
#include "galvani/model/inputs.h"

namespace galvani::python {
namespace {

at::Tensor labels_or_none(const py::object& labels, std::int64_t n) {
  if (labels.is_none()) return at::full({n}, Labelled::kUnlabelled, at::kLong);
  at::Tensor given = to_labels(labels.cast<py::array>(), "labels");
  if (given.size(0) != n) bad_input("labels: there are {}, but {} inputs", given.size(0), n);
  return given;
}

// Under `name` from now on: memory:NAME is the spec.
void lend(const std::string& name, const py::array& array, const py::object& labels,
          const std::vector<std::string>& class_names, std::int64_t rate) {
  at::Tensor inputs = to_inputs(array, "inputs");
  if (inputs.is_floating_point())
    bad_input(
        "inputs: are float32, but data are what files hold: uint8 images, or int16 sounds; images from 0 to 1 are "
        "(x * 255).round().astype('uint8')");
  bool sounds = inputs.dim() == 3;
  if (sounds && rate < 1) bad_usage("sounds need their rate, in samples a second");
  SampleType type = sounds ? SampleType::audio(inputs.size(1), inputs.size(2), rate)
                           : SampleType::image(inputs.size(1), inputs.size(2), inputs.size(3));
  if (!sounds && type.shape[0] != 1 && type.shape[0] != 3)
    bad_input("inputs: images have 1 or 3 channels, in the order (N, C, H, W), not {}", type.shape[0]);
  Labelled about;
  about.name = name;
  about.labels = labels_or_none(labels, inputs.size(0));
  about.class_names = class_names;
  lend_data(about, type, inputs);
}

// What a spec names; as the network takes it, if there is one.
DataView open(const std::string& spec, const std::string& split, const std::shared_ptr<Network>& network) {
  Work work;
  return network ? open_data_for(*network, spec, split) : open_data(spec, split);
}

py::object fetch(const DataView& data, const std::vector<std::int64_t>& rows) {
  at::Tensor found;
  {
    Work work;
    found = data.fetch(rows);
  }
  return to_array(found);
}

// Of one image, [C, H, W] uint8.
py::bytes png(const py::array& array) {
  at::Tensor image = to_tensor(array, "image").contiguous();
  bool good = image.dim() == 3 && image.scalar_type() == at::kByte && (image.size(0) == 1 || image.size(0) == 3);
  if (!good) bad_input("image: must be (C, H, W) uint8 with one or three channels");
  return SampleType::image(image.size(0), image.size(1), image.size(2)).encode(image);
}

}  // namespace

void bind_data(py::module_& module) {
  py::class_<DataView>(module, "DataView")
      .def_property_readonly("name", [](const DataView& data) { return data.name; })
      .def_property_readonly("labels", [](const DataView& data) { return to_array(data.labels); })
      .def_property_readonly("class_names", [](const DataView& data) { return data.class_names; })
      .def_property_readonly("files", [](const DataView& data) { return data.files; })
      .def_property_readonly("shape", [](const DataView& data) { return py::tuple(py::cast(data.type().shape)); })
      .def_property_readonly("rate", [](const DataView& data) { return data.type().rate; })
      .def("__len__", &DataView::size)
      .def("fetch", fetch);
  module.def("open_data", open);
  module.def("lend_data", lend);
  module.def("png", png);
  module.def("take_back_data", take_back_data);
}

}  // namespace galvani::python
