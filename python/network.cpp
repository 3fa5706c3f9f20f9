#include "galvani/model/network.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <pybind11/stl.h>

#include "convert.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/model/answers.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"

namespace galvani::python {
namespace {

CardFlags card_flags(const py::dict& given) {
  CardFlags flags;
  const std::vector<std::pair<const char*, std::string CardFlags::*>> texts = {
      {"range", &CardFlags::range},
      {"mean", &CardFlags::mean},
      {"std", &CardFlags::deviation},
      {"channels", &CardFlags::channels},
      {"layout", &CardFlags::layout},
      {"input", &CardFlags::input},
      {"head", &CardFlags::head},
      {"task", &CardFlags::task},
      {"model_output", &CardFlags::output},
      {"threshold", &CardFlags::threshold},
      {"tolerance", &CardFlags::tolerance},
      {"resize", &CardFlags::resize},
      {"crop", &CardFlags::crop},
      {"classes", &CardFlags::classes},
      {"label_shift", &CardFlags::label_shift}};
  for (const auto& [name, member] : texts) {
    if (given.contains(name)) flags.*member = given[name].cast<std::string>();
  }
  if (given.contains("skip_broken")) flags.skip_broken = given["skip_broken"].cast<bool>();
  return flags;
}

std::shared_ptr<Network> load(const std::string& path, const py::dict& given, const std::vector<std::int64_t>& shape) {
  Network::Options options;
  options.flags = card_flags(given);
  options.data_shape = shape;
  options.any_task = true;
  if (given.contains("micro_batch")) options.micro_batch = given["micro_batch"].cast<std::int64_t>();
  if (given.contains("unfused")) options.unfused = given["unfused"].cast<bool>();
  Work work;
  return Network::load(path, options);
}

py::dict info_of(const Network& network) {
  const NetworkInfo& info = network.info();
  py::dict result;
  result["path"] = info.path;
  result["format"] = info.format;
  result["sha256"] = info.sha256;
  result["input"] = py::tuple(py::cast(info.input));
  result["classes"] = info.classes;
  result["task"] = to_string(info.question.task);
  result["class_names"] = network.card().class_names;
  result["parameters"] = info.parameters;
  result["preprocessing"] = preprocessing_text(network);
  result["preprocessing_known"] = network.card().preprocess_known;
  result["notes"] = info.notes;
  return result;
}

py::list taps_of(const Network& network) {
  py::list result;
  for (const Tap& tap : network.taps()) {
    py::dict entry;
    entry["name"] = tap.name;
    entry["kind"] = to_string(tap.kind);
    entry["op"] = tap.op;
    entry["shape"] = py::tuple(py::cast(tap.shape));
    entry["neurons"] = tap.neurons();
    result.append(entry);
  }
  return result;
}

// The score of each row's class; rows of padding have none that matters.
Objective score_of(const at::Tensor& classes) {
  return [classes](const Pass& pass) {
    at::Tensor wanted = at::zeros({pass.logits.size(0)}, at::kLong);
    wanted.narrow(0, 0, pass.count).copy_(classes.narrow(0, pass.first, pass.count));
    return pass.logits.gather(1, wanted.unsqueeze(1)).squeeze(1);
  };
}

Objective best_score() {
  return [](const Pass& pass) { return std::get<0>(pass.logits.max(1)); };
}

// What others scale to 0..1 is nearly black on the scale of files.
void warn_of_another_scale(const at::Tensor& images) {
  if (!images.is_floating_point()) return;
  auto largest = std::max(images.max().item<float>(), -images.min().item<float>());
  if (largest == 0 || largest > 1) return;
  const char* text =
      images.dim() == 4
          ? "images: no value is greater than 1, but floats are taken on the scale 0 to 255 of files; if "
            "they are from 0 to 1, multiply them by 255"
          : "images: no value is greater than 1, but floats are taken on the 16-bit scale of sound files; "
            "if they are from -1 to 1, multiply them by 32768";
  if (PyErr_WarnEx(PyExc_UserWarning, text, 2) != 0) throw py::error_already_set();
}

at::Tensor inputs_of(Network& network, const py::array& array) {
  at::Tensor images = to_inputs(array, "images");
  network.read_as_images(images.sizes().slice(1).vec());
  check_fits(network, images, "images");
  warn_of_another_scale(images);
  return images;
}

// `gradient`: none, "predicted" or the class of every row.
py::dict run(Network& network, const py::array& array, const std::string& taps, bool full, const py::object& gradient,
             bool tap_gradients, bool alone) {
  at::Tensor images = inputs_of(network, array);
  Request request;
  request.alone = alone;
  request.form = full ? TapForm::full : TapForm::neurons;
  if (!taps.empty()) request.taps = network.select_taps(taps);
  if (!gradient.is_none()) {
    request.input_gradient = true;
    request.tap_gradients = tap_gradients;
    if (py::isinstance<py::str>(gradient)) {
      auto word = gradient.cast<std::string>();
      if (word != "predicted")
        bad_usage("gradient_of is '{}', but must be 'predicted', or a class for every input", printable(word));
      request.objective = best_score();
    } else {
      at::Tensor classes = to_labels(gradient.cast<py::array>(), "gradient_of");
      bool fits = classes.size(0) == images.size(0) && classes.min().item<std::int64_t>() >= 0 &&
                  classes.max().item<std::int64_t>() < network.info().classes;
      if (!fits)
        bad_input("gradient_of: must be {} classes from 0 to {}, one for every input", images.size(0),
                  network.info().classes - 1);
      request.objective = score_of(classes);
    }
  }
  // Without references a task that needs them gives its answers.
  request.answers = network.info().question.by_reference();
  Outputs out;
  {
    Work work;
    out = network.run(images, request);
  }
  py::dict result;
  result["logits"] = to_array(request.answers ? out.answers : out.logits);
  py::dict values;
  py::dict slopes;
  for (std::size_t i = 0; i < request.taps.size(); ++i) {
    const std::string& name = network.taps()[static_cast<std::size_t>(request.taps[i])].name;
    values[py::str(name)] = to_array(out.taps[i]);
    if (i < out.tap_gradients.size()) slopes[py::str(name)] = to_array(out.tap_gradients[i]);
  }
  result["taps"] = values;
  result["input_gradient"] = to_array(out.input_gradient);
  result["tap_gradients"] = slopes;
  return result;
}

constexpr std::int64_t kLookedAt = 64;  // inputs that tell what the outputs are

py::dict predict_array(Network& network, const py::array& array) {
  at::Tensor images = inputs_of(network, array);
  Predictions found;
  {
    Work work;
    network.settle_head(images.narrow(0, 0, std::min<std::int64_t>(kLookedAt, images.size(0))));
    found = predict(network, images);
  }
  py::dict result;
  result["predicted"] = to_array(found.labels);
  result["logits"] = to_array(found.logits);
  result["probabilities"] = to_array(found.probabilities);
  result["confidence"] = to_array(found.confidence);
  result["reexamined"] = found.reexamined;
  return result;
}

py::array answers_array(Network& network, const py::array& array) {
  at::Tensor images = inputs_of(network, array);
  const NetworkInfo& info = network.info();
  if (!info.question.by_reference())
    bad_usage("{}: its task is {}, so it has verdicts: predict", info.path, to_string(info.question.task));
  Request request;
  request.answers = true;
  at::Tensor answers;
  {
    Work work;
    answers = shown_answers(info, network.run(images, request).answers);
  }
  return to_array(answers).cast<py::array>();
}

}  // namespace

void bind_network(py::module_& module) {
  py::class_<Network, std::shared_ptr<Network>>(module, "Network")
      .def_static("load", load)
      .def("info", info_of)
      .def("taps", taps_of)
      .def("select_taps",
           [](const Network& network, const std::string& spec) {
             std::vector<std::string> names;
             for (int tap : network.select_taps(spec))
               names.push_back(network.taps()[static_cast<std::size_t>(tap)].name);
             return names;
           })
      .def("run", run)
      .def("predict", predict_array)
      .def("answers", answers_array)
      .def("parameter_names",
           [](const Network& network) {
             std::vector<std::string> names;
             for (const NamedParameter& parameter : network.parameters()) names.push_back(parameter.name);
             return names;
           })
      .def("parameter",
           [](const Network& network, const std::string& name) { return to_array(network.parameter(name)); })
      .def("set_parameter",
           [](Network& network, const std::string& name, const py::array& value) {
             at::Tensor tensor = to_tensor(value, name);
             Work work;
             network.set_parameter(name, tensor.to(at::kFloat).contiguous());
           })
      .def("identity", &Network::identity)
      .def("clone",
           [](const Network& network) {
             Work work;
             return std::shared_ptr<Network>(network.clone());
           })
      .def("save", [](Network& network, const std::string& path) {
        Work work;
        network.save(path);
      });
  module.def("cache_folder", [] { return cache_folder().string(); });
}

}  // namespace galvani::python
