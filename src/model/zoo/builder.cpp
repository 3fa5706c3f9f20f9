#include "model/zoo/builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "galvani/base/error.h"
#include "model/zoo/builder_impl.h"

namespace galvani::zoo {

using onnx::set_float;
using onnx::set_int;
using onnx::set_ints;
using onnx::set_text;

namespace {

constexpr std::int64_t kMostFileBytes = std::numeric_limits<std::int32_t>::max();  // protobuf's limit
constexpr std::int64_t kSpareBytes = 1 << 20;                                      // for names and nodes
constexpr const char* kInput = "input";
constexpr const char* kOutput = "logits";

// Kernel, stride and padding of a window that is the same along every axis of [C, ...].
void set_window(::onnx::NodeProto& node, const Value& x, std::int64_t kernel, std::int64_t stride,
                std::int64_t padding) {
  std::size_t axes = x.shape.size() - 1;
  set_ints(node, "kernel_shape", std::vector<std::int64_t>(axes, kernel));
  set_ints(node, "strides", std::vector<std::int64_t>(axes, stride));
  set_ints(node, "pads", std::vector<std::int64_t>(2 * axes, padding));
}

// The side of what a window leaves of `side` pixels.
std::int64_t windowed(const std::string& layer, std::int64_t side, std::int64_t kernel, std::int64_t stride,
                      std::int64_t padding) {
  std::int64_t room = side + 2 * padding - kernel;
  if (room < 0) fail(ErrorCode::internal, "layer '{}' has a window of {} for {} pixels", layer, kernel, side);
  return room / stride + 1;
}

// [channels, ...] after such a window has passed over [C, ...].
std::vector<std::int64_t> windowed_shape(const std::string& layer, const Value& x, std::int64_t channels,
                                         std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  std::vector<std::int64_t> result = {channels};
  for (std::size_t axis = 1; axis < x.shape.size(); ++axis)
    result.push_back(windowed(layer, x.shape[axis], kernel, stride, padding));
  return result;
}

void require_maps(const std::string& layer, const Value& x) {
  if (x.shape.size() != 3 && x.shape.size() != 2) fail(ErrorCode::internal, "layer '{}' wants feature maps", layer);
}

void require_map(const std::string& layer, const Value& x) {
  if (x.shape.size() != 3) fail(ErrorCode::internal, "layer '{}' wants feature maps", layer);
}

}  // namespace

GraphBuilder::GraphBuilder(std::string architecture, const ArchitectureShape& shape, const Rng& rng)
    : architecture_(std::move(architecture)), shape_(shape), rng_(rng), impl_(std::make_unique<Impl>(architecture_)) {
  auto check = [&](const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
      bad_usage("{} cannot be built for {} {}; from {} to {} will do", architecture_, value, what, least, most);
  };
  check("channels", shape.channels, 1, 4096);
  if (shape.length > 0) {
    check("samples", shape.length, 1, std::int64_t{1} << 26);
    check("samples a second", shape.rate, 1, 1000000);
  } else {
    check("rows of pixels", shape.height, 1, 16384);
    check("columns of pixels", shape.width, 1, 16384);
  }
  check("classes", shape.classes, 2, 1000000);

  impl_->writer.claim(kInput);
  set_shape(*impl_->graph().add_input(), input());
}

GraphBuilder::~GraphBuilder() = default;

std::int64_t GraphBuilder::smaller_side() const {
  return std::min(shape_.height, shape_.width);
}

void GraphBuilder::require_image(std::int64_t side) const {
  if (shape_.length > 0)
    bad_usage("{} is a network of images, and these are sounds; audionet is one of sounds", architecture_);
  if (smaller_side() < side)
    bad_usage("{} needs images of at least {}x{}, not {}x{}", architecture_, side, side, shape_.height, shape_.width);
}

void GraphBuilder::require_sound(std::int64_t length) const {
  if (shape_.length == 0) bad_usage("{} is a network of sounds, and these are images", architecture_);
  if (shape_.channels != 1) bad_usage("{} takes sounds of one channel, not of {}", architecture_, shape_.channels);
  if (shape_.length < length)
    bad_usage("{} needs sounds of at least {} samples, not {}", architecture_, length, shape_.length);
}

Value GraphBuilder::input() const {
  if (shape_.length > 0) return {kInput, {shape_.channels, shape_.length}};
  return {kInput, {shape_.channels, shape_.height, shape_.width}};
}

Value GraphBuilder::conv(const std::string& name, const Value& x, std::int64_t channels, const ConvOptions& options) {
  require_maps(name, x);
  auto [kernel, stride, padding, groups, bias, unit] = options;
  if (x.shape[0] % groups != 0 || channels % groups != 0)
    fail(ErrorCode::internal, "layer '{}' cannot split {} channels into {} groups", name, x.shape[0], groups);
  std::vector<std::string> inputs = {x.name, name + ".weight"};
  std::vector<std::int64_t> dims = {channels, x.shape[0] / groups};
  dims.resize(x.shape.size() + 1, kernel);
  std::int64_t window = 1;
  for (std::size_t axis = 2; axis < dims.size(); ++axis) window *= dims[axis];
  // As in PyTorch, the fan-out of a grouped convolution counts the channels of all groups.
  double variance = unit ? 1.0 / static_cast<double>(dims[1] * window) : 2.0 / static_cast<double>(channels * window);
  add_normal(name + ".weight", dims, std::sqrt(variance));
  if (bias) {
    inputs.push_back(name + ".bias");
    add_filled(name + ".bias", channels, 0);
  }
  ::onnx::NodeProto& node = impl_->add_node("Conv", name, inputs);
  set_window(node, x, kernel, stride, padding);
  set_int(node, "group", groups);
  return impl_->give(name, windowed_shape(name, x, channels, kernel, stride, padding));
}

Value GraphBuilder::batch_norm(const std::string& name, const Value& x) {
  add_filled(name + ".weight", x.shape[0], 1);
  add_filled(name + ".bias", x.shape[0], 0);
  add_filled(name + ".running_mean", x.shape[0], 0);
  add_filled(name + ".running_var", x.shape[0], 1);
  ::onnx::NodeProto& node =
      impl_->add_node("BatchNormalization", name,
                      {x.name, name + ".weight", name + ".bias", name + ".running_mean", name + ".running_var"});
  set_float(node, "epsilon", 1e-5F);
  set_float(node, "momentum", 0.9F);
  return impl_->give(name, x.shape);
}

Value GraphBuilder::conv_bn(const std::string& conv_name, const std::string& bn_name, const Value& x,
                            std::int64_t channels, const ConvOptions& options) {
  return batch_norm(bn_name, conv(conv_name, x, channels, options));
}

Value GraphBuilder::relu(const std::string& name, const Value& x) {
  impl_->add_node("Relu", name, {x.name});
  return impl_->give(name, x.shape);
}

Value GraphBuilder::relu6(const std::string& name, const Value& x) {
  return clipped_relu(name, x, 6);
}

Value GraphBuilder::clipped_relu(const std::string& name, const Value& x, double most) {
  std::string low = impl_->writer.constant(name + ".low", 0.0F);
  std::string high = impl_->writer.constant(name + ".high", static_cast<float>(most));
  impl_->add_node("Clip", name, {x.name, low, high});
  return impl_->give(name, x.shape);
}

Value GraphBuilder::leaky_relu(const std::string& name, const Value& x) {
  set_float(impl_->add_node("LeakyRelu", name, {x.name}), "alpha", 0.2F);
  return impl_->give(name, x.shape);
}

Value GraphBuilder::tanh(const std::string& name, const Value& x) {
  impl_->add_node("Tanh", name, {x.name});
  return impl_->give(name, x.shape);
}

Value GraphBuilder::instance_norm(const std::string& name, const Value& x) {
  require_map(name, x);
  add_filled(name + ".weight", x.shape[0], 1);
  add_filled(name + ".bias", x.shape[0], 0);
  ::onnx::NodeProto& node = impl_->add_node("InstanceNormalization", name, {x.name, name + ".weight", name + ".bias"});
  set_float(node, "epsilon", 1e-5F);
  return impl_->give(name, x.shape);
}

Value GraphBuilder::enlarge(const std::string& name, const Value& x, std::int64_t height, std::int64_t width) {
  require_map(name, x);
  // Sizes would need the batch, which is open; scales are rounded down, so a little more is said where they are not
  // whole.
  auto scale = [](std::int64_t from, std::int64_t to) {
    double more = to % from == 0 ? 0 : 0.25;
    return static_cast<float>((static_cast<double>(to) + more) / static_cast<double>(from));
  };
  std::string scales =
      impl_->writer.real_constant(name + ".scales", {1, 1, scale(x.shape[1], height), scale(x.shape[2], width)});
  ::onnx::NodeProto& node = impl_->add_node("Resize", name, {x.name, "", scales});
  set_text(node, "mode", "nearest");
  set_text(node, "coordinate_transformation_mode", "asymmetric");
  set_text(node, "nearest_mode", "floor");
  return impl_->give(name, {x.shape[0], height, width});
}

Value GraphBuilder::concat(const std::string& name, const Value& a, const Value& b) {
  require_map(name, a);
  if (b.shape.size() != 3 || a.shape[1] != b.shape[1] || a.shape[2] != b.shape[2])
    fail(ErrorCode::internal, "layer '{}' joins '{}' and '{}' of unlike size", name, a.name, b.name);
  set_int(impl_->add_node("Concat", name, {a.name, b.name}), "axis", 1);
  return impl_->give(name, {a.shape[0] + b.shape[0], a.shape[1], a.shape[2]});
}

Value GraphBuilder::max_pool(const std::string& name, const Value& x, std::int64_t kernel, std::int64_t stride,
                             std::int64_t padding) {
  require_maps(name, x);
  set_window(impl_->add_node("MaxPool", name, {x.name}), x, kernel, stride, padding);
  return impl_->give(name, windowed_shape(name, x, x.shape[0], kernel, stride, padding));
}

Value GraphBuilder::global_avg_pool(const std::string& name, const Value& x) {
  require_maps(name, x);
  impl_->add_node("GlobalAveragePool", name, {x.name});
  std::vector<std::int64_t> shape(x.shape.size(), 1);
  shape[0] = x.shape[0];
  return impl_->give(name, shape);
}

Value GraphBuilder::flatten(const std::string& name, const Value& x) {
  require_maps(name, x);
  set_int(impl_->add_node("Flatten", name, {x.name}), "axis", 1);
  std::int64_t features = 1;
  for (std::int64_t size : x.shape) features *= size;
  return impl_->give(name, {features});
}

Value GraphBuilder::dense(const std::string& name, const Value& x, std::int64_t features) {
  if (x.shape.size() != 1) fail(ErrorCode::internal, "layer '{}' wants a flat input", name);
  double bound = 1.0 / std::sqrt(static_cast<double>(x.shape[0]));
  add_uniform(name + ".weight", {features, x.shape[0]}, bound);
  add_uniform(name + ".bias", {features}, bound);
  set_int(impl_->add_node("Gemm", name, {x.name, name + ".weight", name + ".bias"}), "transB", 1);
  return impl_->give(name, {features});
}

Value GraphBuilder::dropout(const std::string& name, const Value& x, double ratio) {
  std::string constant = impl_->writer.constant(name + ".ratio", static_cast<float>(ratio));
  impl_->add_node("Dropout", name, {x.name, constant});
  return impl_->give(name, x.shape);
}

Value GraphBuilder::add(const std::string& name, const Value& a, const Value& b) {
  if (a.shape != b.shape)
    fail(ErrorCode::internal, "layer '{}' adds '{}' and '{}' of unlike shape", name, a.name, b.name);
  impl_->add_node("Add", name, {a.name, b.name});
  return impl_->give(name, a.shape);
}

Value GraphBuilder::subsample(const std::string& name, const Value& x, std::int64_t stride) {
  require_map(name, x);
  std::string starts = impl_->writer.constant(name + ".starts", {0, 0});
  std::string ends = impl_->writer.constant(name + ".ends", {x.shape[1], x.shape[2]});
  std::string axes = impl_->writer.constant(name + ".axes", {2, 3});
  std::string steps = impl_->writer.constant(name + ".steps", {stride, stride});
  impl_->add_node("Slice", name, {x.name, starts, ends, axes, steps});
  return impl_->give(name,
                     {x.shape[0], windowed(name, x.shape[1], 1, stride, 0), windowed(name, x.shape[2], 1, stride, 0)});
}

Value GraphBuilder::pad_channels(const std::string& name, const Value& x, std::int64_t before, std::int64_t after) {
  require_map(name, x);
  std::string pads = impl_->writer.constant(name + ".pads", {0, before, 0, 0, 0, after, 0, 0});
  impl_->add_node("Pad", name, {x.name, pads});
  return impl_->give(name, {x.shape[0] + before + after, x.shape[1], x.shape[2]});
}

Value GraphBuilder::as_map(const std::string& name, const Value& x) {
  std::string axes = impl_->writer.constant(name + ".axes", std::vector<std::int64_t>{1});
  impl_->add_node("Unsqueeze", name, {x.name, axes});
  std::vector<std::int64_t> shape = x.shape;
  shape.insert(shape.begin(), 1);
  return impl_->give(name, shape);
}

Value GraphBuilder::rows_as_channels(const std::string& name, const Value& x) {
  require_map(name, x);
  std::string sizes = impl_->writer.constant(name + ".sizes", {0, x.shape[0] * x.shape[1], x.shape[2]});
  impl_->add_node("Reshape", name, {x.name, sizes});
  return impl_->give(name, {x.shape[0] * x.shape[1], x.shape[2]});
}

void GraphBuilder::share_weights(const std::string& suffix) {
  impl_->writer.share_weights(suffix);
}

std::string GraphBuilder::finish(const Value& logits, const std::string& spec) {
  ::onnx::GraphProto& graph = impl_->graph();
  ::onnx::NodeProto& last = *graph.mutable_node(graph.node_size() - 1);
  if (last.output(0) != logits.name || logits.shape != std::vector<std::int64_t>{classes()})
    fail(ErrorCode::internal, "'{}' is not the last layer of {} or has not one feature a class", logits.name,
         architecture_);
  impl_->writer.claim(kOutput);
  last.set_output(0, kOutput);
  graph.mutable_value_info()->RemoveLast();
  set_shape(*graph.add_output(), {kOutput, logits.shape});
  impl_->writer.metadata("galvani.architecture", spec);
  return impl_->writer.bytes();
}

std::string GraphBuilder::finish_maps(const std::vector<std::pair<Value, std::string>>& outputs,
                                      const std::string& spec) {
  impl_->writer.share_weights("");
  for (const auto& [value, name] : outputs) {
    // A value that later layers read cannot be called otherwise.
    impl_->add_node("Identity", name, {value.name});
    set_shape(*impl_->graph().add_output(), {name, value.shape});
  }
  impl_->writer.metadata("galvani.architecture", spec);
  return impl_->writer.bytes();
}

std::size_t GraphBuilder::reserve_weights(const std::vector<std::int64_t>& dims) {
  std::int64_t size = 1;
  for (std::int64_t dim : dims) size *= dim;
  weight_bytes_ += size * static_cast<std::int64_t>(sizeof(float));
  if (weight_bytes_ > kMostFileBytes - kSpareBytes)
    bad_usage("{} for inputs of that size and {} classes has more weights than the 2 GiB an ONNX file can hold",
              architecture_, shape_.classes);
  return static_cast<std::size_t>(size);
}

void GraphBuilder::add_filled(const std::string& name, std::int64_t size, float value) {
  impl_->writer.weight(name, {size}, std::vector<float>(reserve_weights({size}), value));
}

void GraphBuilder::add_uniform(const std::string& name, const std::vector<std::int64_t>& dims, double bound) {
  std::vector<float> values(reserve_weights(dims));
  rng_.derive(name).fill_uniform(values.data(), values.size());
  auto scale = static_cast<float>(bound);
  for (float& value : values) value = scale * (2 * value - 1);
  impl_->writer.weight(name, dims, values);
}

void GraphBuilder::add_normal(const std::string& name, const std::vector<std::int64_t>& dims, double deviation) {
  std::vector<float> values(reserve_weights(dims));
  rng_.derive(name).fill_normal(values.data(), values.size());
  for (float& value : values) value *= static_cast<float>(deviation);
  impl_->writer.weight(name, dims, values);
}

}  // namespace galvani::zoo
