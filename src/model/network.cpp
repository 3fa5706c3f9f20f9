#include "galvani/model/network.h"

#include <fmt/format.h>
#include <torch/script.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <new>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/limits.h"
#include "galvani/base/log.h"
#include "model/graph_tools.h"
#include "model/network_impl.h"
#include "model/number_types.h"
#include "model/onnx/program.h"
#include "model/torchscript/archive.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr const char* kCardKey = "galvani";

// Runs a step that calls into LibTorch; what it throws becomes a sentence about the file.
template <class Step>
auto guarded(const std::string& label, const char* what, Step step) {
  try {
    return step();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    bad_input("{}: {}: it takes too much memory", label, what);
  } catch (const std::exception& e) {
    bad_input("{}: {}: {}", label, what, first_line(e.what()));
  }
}

// The card is whole before the graph is looked at: it may say which output counts.
void settle_card(Network::Impl& impl, const std::string& label, const Network::Options& options, bool is_file) {
  fs::path toml = label + ".toml";
  fs::path stem_toml = fs::path(label).replace_extension(".toml");
  for (const fs::path& beside : {stem_toml, toml}) {
    std::error_code ignored;
    if (is_file && fs::is_regular_file(beside, ignored)) {
      impl.card.override_with_toml(beside);
      break;
    }
  }
  options.flags.apply_to(impl.card);
}

// Which output counts: by the name in the file, or by number.
std::size_t chosen_output(const Network::Impl& impl, const std::string& label) {
  const std::string& wanted = impl.card.output;
  if (wanted.empty()) return 0;
  const std::vector<std::string>& names = impl.output_names;
  if (auto named = std::find(names.begin(), names.end(), wanted); named != names.end())
    return static_cast<std::size_t>(named - names.begin());
  std::size_t number = 0;
  std::size_t prefix = wanted.rfind("output", 0) == 0 ? 6 : 0;
  const char* end = wanted.data() + wanted.size();
  auto [rest, error] = std::from_chars(wanted.data() + prefix, end, number);
  if (error == std::errc() && rest == end && (names.empty() || number < names.size())) return number;
  bad_input("{}: has no output '{}'{}", label, printable(wanted),
            names.empty() ? "; they are numbered from 0" : fmt::format("; it has {}", fmt::join(names, ", ")));
}

std::unique_ptr<Network::Impl> from_onnx_bytes(std::string bytes, const fs::path& folder, const std::string& label,
                                               const Network::Options& options, bool is_file) {
  auto impl = std::make_unique<Network::Impl>();
  impl->any_output = options.any_output;
  onnx::Program program = onnx::import_onnx(bytes, folder, label, onnx::HalfTypes::widened);
  if (program.inputs.size() != 1)
    bad_input("{}: takes {} inputs; only models of one image are supported", label, program.inputs.size());
  at::ScalarType number = program.inputs[0].type;
  if (number != at::kFloat && number != at::kByte)
    bad_input("{}: its input is of type {}; images can be float32, float16 or uint8", label, c10::toString(number));
  impl->info.number = number == at::kByte ? "uint8" : program.half_input ? "float16" : "float32";
  impl->module = torch::jit::Module("onnx_model");
  onnx::build_module(program, label, impl->module);
  GraphNames names;
  for (const auto& parameter : program.parameters) {
    names.parameter[parameter.attribute] = parameter.initializer;
    // Constants that the importer computed have no place in the file.
    if (!parameter.initializer.empty()) impl->initializer_of[parameter.attribute] = parameter.initializer;
    if (parameter.stored != parameter.value.scalar_type()) impl->narrow[parameter.attribute] = parameter.stored;
    if (!parameter.trainable) names.constants.insert(parameter.attribute);
    if (parameter.trainable) {
      impl->trainable.push_back(parameter.attribute);
      impl->info.parameters += parameter.value.numel();
    }
  }
  names.node = program.node_of_variable;
  for (const auto& port : program.outputs) impl->output_names.push_back(port.name);
  impl->info.format = "onnx";
  impl->info.opset = program.opset;
  impl->info.producer = program.producer;
  impl->info.notes = program.warnings;
  if (auto it = program.metadata.find(kCardKey); it != program.metadata.end())
    impl->card = ModelCard::from_json(it->second, label);
  settle_card(*impl, label, options, is_file);
  impl->result = chosen_output(*impl, label);
  const std::vector<std::int64_t>& shape = program.inputs[0].shape;
  if (program.inputs[0].shaped && (shape.size() < 2 || shape.size() > 4))
    bad_input("{}: its input has {} dimensions; images have 4, sounds 3 or 2", label, shape.size());
  if (shape.size() >= 2) {
    impl->info.input.assign(shape.begin() + 1, shape.end());
    if (shape[0] > 0) impl->info.fixed_batch = shape[0];
  }
  // The file alone does not say what the network is if its weights lie beside it.
  impl->info.sha256 = sha256(bytes);
  if (!program.external_sha256.empty()) impl->info.sha256 = sha256(impl->info.sha256 + program.external_sha256);
  impl->original = std::move(bytes);
  impl->folder = folder;
  impl->executor = guarded(label, "cannot be prepared for running", [&] {
    return std::make_unique<Executor>(impl->freeze(), std::move(names), label, impl->result, options.any_output);
  });
  return impl;
}

std::unique_ptr<Network::Impl> from_torchscript_bytes(const std::string& bytes, const std::string& label,
                                                      const Network::Options& options) {
  auto impl = std::make_unique<Network::Impl>();
  impl->any_output = options.any_output;
  std::string card;
  torchscript::load_module(bytes, label, impl->module, card);
  if (!card.empty()) impl->card = ModelCard::from_json(card, label);
  settle_card(*impl, label, options, /*is_file=*/true);
  impl->result = chosen_output(*impl, label);
  impl->info.format = "torchscript";
  impl->info.sha256 = sha256(bytes);
  impl->narrow = widen_tensors(impl->module);
  if (!impl->narrow.empty()) impl->info.number = "float16";
  for (const auto& parameter : impl->module.named_parameters()) {
    impl->trainable.push_back(parameter.name);
    impl->info.parameters += parameter.value.numel();
    if (parameter.value.is_floating_point() && !at::isfinite(parameter.value).all().item<bool>())
      impl->info.notes.push_back("the weights '" + parameter.name + "' contain NaN or infinity");
  }
  impl->executor = guarded(label, "cannot be prepared for running", [&] {
    FrozenModule frozen = impl->freeze();
    torchscript::check_graph(*frozen.graph, label);
    return std::make_unique<Executor>(std::move(frozen), GraphNames(), label, impl->result, options.any_output);
  });
  return impl;
}

// A TorchScript graph does not state the number type of its input: the card may, or bytes are what it runs on.
void take_bytes(Network::Impl& impl, const std::string& label) {
  impl.info.number = "uint8";
  impl.head_settled = impl.task_settled = false;
  impl.executor = std::make_unique<Executor>(impl.freeze(), GraphNames(), label, impl.result, impl.any_output);
}

void settle_number_type(Network::Impl& impl, const std::string& label) {
  bool stated = !impl.card.number.empty() && impl.card.number != impl.info.number;
  if (stated && (impl.info.format == "onnx" || impl.card.number != "uint8"))
    bad_input("{}: takes {} input, not {} as stated", label, impl.info.number, impl.card.number);
  if (stated) take_bytes(impl, label);
  if (!impl.narrow.empty())
    log::debug("{}: its float16 is run in float32, for which this processor has kernels", label);
  // Bytes between 0 and 1 are what nobody means.
  Preprocess& range = impl.card.preprocess;
  if (impl.takes_bytes() && range.low == 0 && range.high == 1) range.high = 255;
}

void probe_number_types(Network::Impl& impl, const std::string& label, const std::vector<std::int64_t>& data_shape) {
  bool open = impl.info.format != "onnx" && impl.card.number.empty() && impl.info.number == "float32";
  NetworkInfo before = impl.info;
  try {
    return impl.probe(data_shape);
  } catch (const Error& as_floats) {
    if (!open || as_floats.code() != ErrorCode::bad_input) throw;
    try {
      impl.info = before;
      take_bytes(impl, label);
      settle_number_type(impl, label);
      return impl.probe(data_shape);
    } catch (const std::exception&) {
    }
    throw;
  }
}

std::unique_ptr<Network::Impl> finish(std::unique_ptr<Network::Impl> impl, const std::string& label,
                                      const Network::Options& options) {
  impl->info.path = label;
  impl->any_task = options.any_task;
  impl->execution = options.execution;
  impl->wanted_micro_batch = options.micro_batch;
  impl->info.random_layers = impl->executor->random_layers();
  impl->may_fuse = !options.unfused;
  if (impl->executor->has_hidden_layers())
    impl->info.notes.emplace_back("layers inside loops or branches that depend on the data cannot be tapped");
  guarded(label, "cannot be run", [&] {
    settle_number_type(*impl, label);
    probe_number_types(*impl, label, options.data_shape);
    return 0;
  });
  impl->tell_reading();
  for (const std::string& note : impl->info.notes) log::warn("{}: {}", label, note);
  return impl;
}

}  // namespace

FrozenModule Network::Impl::freeze() {
  bool imported = info.format == "onnx";
  FrozenModule frozen = imported ? freeze_import(module) : freeze_script(module);
  if (!imported && !narrow.empty()) widen_graph(*frozen.graph);
  if (takes_bytes()) take_bytes_as_floats(*frozen.graph);
  return frozen;
}

const char* to_string(TapKind kind) {
  switch (kind) {
    case TapKind::convolution:
      return "conv";
    case TapKind::dense:
      return "dense";
    case TapKind::activation:
      return "activation";
  }
  return "";
}

std::int64_t Tap::units() const {
  std::int64_t product = 1;
  for (std::int64_t n : shape) product *= n;
  return product;
}

std::vector<std::int64_t> Tap::other_axes() const {
  std::vector<std::int64_t> axes;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(shape.size()); ++d) {
    if (d != axis) axes.push_back(d + 1);
  }
  return axes;
}

Network::Network(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Network::~Network() = default;

namespace {

// What loading and a first run may take, in seconds of computing: a busy machine takes nothing from it.
double load_seconds(std::size_t bytes) {
  constexpr double kUsual = 8;
  constexpr double kPerMegabyte = 0.5;
  if (const char* own = std::getenv("GALVANI_LOAD_SECONDS"); own != nullptr && *own != '\0')
    return std::strtod(own, nullptr);
  return kUsual + kPerMegabyte * static_cast<double>(bytes >> 20);
}

}  // namespace

std::unique_ptr<Network> Network::load(const fs::path& path, const Options& options) {
  std::string bytes = read_file(path);
  StepLimit limit(path.string(), load_seconds(bytes.size()));
  std::string label = path.string();
  if (bytes.empty()) bad_input("{}: is empty", label);
  fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  std::unique_ptr<Impl> impl = torchscript::is_archive(bytes)
                                   ? from_torchscript_bytes(bytes, label, options)
                                   : from_onnx_bytes(std::move(bytes), folder, label, options, /*is_file=*/true);
  return made(std::move(impl), label, options);
}

std::unique_ptr<Network> Network::from_onnx(std::string bytes, const std::string& label, const Options& options) {
  std::unique_ptr<Impl> impl = from_onnx_bytes(std::move(bytes), ".", label, options, /*is_file=*/false);
  return made(std::move(impl), label, options);
}

std::unique_ptr<Network> Network::made(std::unique_ptr<Impl> impl, const std::string& label, const Options& options) {
  std::unique_ptr<Network> network(new Network(finish(std::move(impl), label, options)));
  check_task(*network, options.any_task || options.any_output);
  return network;
}

const NetworkInfo& Network::info() const {
  return impl_->info;
}
const ModelCard& Network::card() const {
  return impl_->card;
}
std::vector<int> Network::taps_with_own_end(const std::vector<int>& taps) const {
  std::set<std::size_t> ends;
  std::vector<int> result;
  for (int tap : taps) {
    if (ends.insert(impl_->executor->end_of(tap)).second) result.push_back(tap);
  }
  return result;
}

std::optional<LinearLayer> Network::linear_layer(int tap) const {
  std::optional<LinearLayer> layer = impl_->executor->linear_layer(tap);
  if (layer && layer->weight.size(0) != impl_->taps.at(static_cast<std::size_t>(tap)).neurons()) return std::nullopt;
  return layer;
}

const std::vector<Tap>& Network::taps() const {
  return impl_->taps;
}

void Network::set_card(const ModelCard& card) {
  check(card.preprocess, impl_->info.input.at(0), impl_->info.path);
  impl_->card = card;
}

std::vector<Layer> Network::layers() const {
  std::vector<Executor::Operator> operators = impl_->executor->operators();
  std::vector<Site> sites;
  for (const auto& op : operators) sites.push_back(op.site);
  c10::InferenceMode inference;
  std::int64_t batch = std::max<std::int64_t>(1, impl_->info.fixed_batch);
  std::vector<std::int64_t> shape = impl_->info.input;
  shape.insert(shape.begin(), batch);
  at::Tensor input = impl_->prepare(at::zeros(shape, at::kByte), {});
  std::vector<at::Tensor> values = impl_->executor->plan_for(sites)->run(input, {});
  std::vector<Layer> result;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    at::IntArrayRef sizes = values[i + 1].sizes();
    bool batched = sizes.size() > 1 && sizes[0] == batch;
    // Arithmetic on shapes and constants is not a layer.
    if (!batched) continue;
    result.push_back({operators[i].op, operators[i].name, sizes.slice(1).vec(), operators[i].parameters});
  }
  return result;
}

void Network::save(const fs::path& path) {
  Impl& impl = *impl_;
  // A TorchScript graph does not state its input, so the card does.
  if (impl.info.format != "onnx" && impl.card.input.empty()) impl.card.input = impl.info.input;
  if (impl.info.format != "onnx" && impl.takes_bytes()) impl.card.number = impl.info.number;
  std::string card = impl.card.to_json();
  if (impl.info.format == "onnx") {
    std::map<std::string, at::Tensor> values;
    for (const auto& [attribute, initializer] : impl.initializer_of)
      values[initializer] = attribute_at(impl.module, attribute);
    write_file(path, onnx::update_onnx(impl.original, impl.folder, impl.info.path, values, {{kCardKey, card}}));
    return;
  }
  torch::jit::Module module = impl.narrow.empty() ? impl.module : impl.module.deepcopy();
  narrow_tensors(module, impl.narrow);
  // People who load the file elsewhere expect trainable parameters.
  for (at::Tensor parameter : module.parameters()) parameter.requires_grad_(parameter.is_floating_point());
  std::string bytes = torchscript::save_module(module, card);
  for (at::Tensor parameter : module.parameters()) parameter.requires_grad_(false);
  write_file(path, bytes);
}

void check_classes(const NetworkInfo& info) {
  if (info.classes == 0) bad_input("{}: gives no score per class, which is needed here", info.path);
}

namespace {

bool may_be_channels(std::int64_t n) {
  return n == 1 || n == 3;
}

// What makes images of that shape fit.
std::string remedy(const Network& network, at::IntArrayRef shape) {
  const std::vector<std::int64_t>& want = network.info().input;
  if (shape.size() == 3 && network.info().graph_input.size() == 1)
    return fmt::format("; --input channels,height,width says which images its {} values are",
                       network.info().graph_input[0]);
  if (shape.size() != 3 || want.size() != 3) return "";
  if (!network.card().preprocess.channels_last && may_be_channels(want[2]) && !may_be_channels(want[0]))
    return "; its channels seem to come last: add --layout nhwc";
  if (shape[2] == want[0] && shape[0] != want[0])
    return "; their channels seem to come last: give them as channels, height, width";
  return may_be_channels(want[0]) ? "; --resize fit makes them fit" : "";
}

}  // namespace

void check_fits(const Network& network, at::IntArrayRef shape, const std::string& data_name) {
  const std::vector<std::int64_t>& want = network.info().input;
  if (shape == at::IntArrayRef(want)) return;
  bad_input("{} has {} of shape {}, but {} takes {}{}", data_name, shape.size() == 2 ? "clips" : "images",
            fmt::join(shape, "x"), network.info().path, fmt::join(want, "x"), remedy(network, shape));
}

void check_fits(const Network& network, const at::Tensor& batch, const std::string& data_name) {
  check_fits(network, batch.sizes().slice(batch.dim() > 0 ? 1 : 0), data_name);
}

}  // namespace galvani
