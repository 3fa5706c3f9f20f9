#include "model/fetched/tflite.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>

#include "galvani/base/error.h"
#include "model/fetched/classifier.h"
#include "model/fetched/flatbuffer.h"

namespace galvani {
namespace {

using onnx::set_int;
using onnx::set_ints;

// Numbers of operators and of fields, as the format has them.
constexpr int kAveragePool = 1;
constexpr int kConvolution = 3;
constexpr int kDepthwise = 4;
constexpr int kReshape = 22;
constexpr int kSoftmax = 25;
constexpr int kSqueeze = 43;
constexpr int kSame = 0;
constexpr int kRelu = 1;
constexpr int kRelu6 = 3;

class TfliteReader {
 public:
  TfliteReader(std::string_view bytes, const std::string& label, const ModelCard& card)
      : label_(label), card_(card), model_(FlatTable::root(bytes, label)), out_(card.architecture), names_(label) {
    if (bytes.size() < 8 || bytes.substr(4, 4) != "TFL3") bad_input("{}: is no TFLite file", label);
    std::vector<FlatTable> graphs = model_.tables(2);
    if (graphs.size() != 1) bad_input("{}: has {} graphs instead of one", label, graphs.size());
    buffers_ = model_.tables(4);
    tensors_ = graphs[0].tables(0);
    operators_ = graphs[0].tables(3);
    for (const FlatTable& code : model_.tables(1)) {
      // Newer files have the number in a wider field.
      int narrow = code.number<std::uint8_t>(0, 0);
      codes_.push_back(std::max<int>(narrow, code.number<std::int32_t>(3, 0)));
    }
    std::vector<std::int32_t> inputs = graphs[0].integers(1);
    if (inputs.size() != 1) bad_input("{}: has {} inputs instead of one", label, inputs.size());
    std::vector<std::int64_t> shape = shape_of(inputs[0]);
    if (shape.size() != 4) bad_input("{}: its input is no image", label);
    out_.input("input", at::kFloat, {-1, shape[3], shape[1], shape[2]}, {"N"});
    values_[inputs[0]] = {"input", {shape[3], shape[1], shape[2]}};
  }

  std::string convert() {
    for (const FlatTable& op : operators_) add(op);
    if (!finished_) bad_input("{}: does not end in a softmax", label_);
    return finish_classifier(out_, card_);
  }

 private:
  struct Value {
    std::string name;
    std::vector<std::int64_t> shape;  // [C, H, W] or [features]
  };

  const FlatTable& tensor(std::int32_t index) const {
    if (index < 0 || static_cast<std::size_t>(index) >= tensors_.size())
      bad_input("{}: an operator names tensor {} of {}", label_, index, tensors_.size());
    return tensors_[static_cast<std::size_t>(index)];
  }

  std::vector<std::int64_t> shape_of(std::int32_t index) const {
    std::vector<std::int64_t> shape;
    for (std::int32_t side : tensor(index).integers(0)) {
      if (side < 1 || side > (1 << 20)) bad_input("{}: tensor {} has a side of {}", label_, index, side);
      shape.push_back(side);
    }
    return shape;
  }

  at::Tensor weight(std::int32_t index, std::size_t axes) const {
    const FlatTable& found = tensor(index);
    if (found.number<std::int8_t>(1, 0) != 0) bad_input("{}: tensor {} is not float32", label_, index);
    auto buffer = found.number<std::uint32_t>(2, 0);
    if (buffer >= buffers_.size()) bad_input("{}: tensor {} has no buffer", label_, index);
    std::string_view bytes = buffers_[buffer].bytes(0);
    std::vector<std::int64_t> shape = shape_of(index);
    std::uint64_t size = sizeof(float);
    for (std::int64_t side : shape) size = std::min<std::uint64_t>(size * static_cast<std::uint64_t>(side), 1ULL << 40);
    if (shape.size() != axes || size != bytes.size())
      bad_input("{}: tensor {} has not the numbers of its shape", label_, index);
    at::Tensor value = at::empty(shape, at::kFloat);
    std::memcpy(value.data_ptr(), bytes.data(), bytes.size());
    return value;
  }

  // "MobilenetV1/MobilenetV1/Conv2d_0/Relu6" is Conv2d_0.
  std::string layer_name(std::int32_t output) {
    std::string path(tensor(output).bytes(3));
    std::size_t end = path.rfind('/');
    std::string name = end == std::string::npos ? path : path.substr(0, end);
    name.erase(0, name.rfind('/') + 1);
    names_.add(name);
    return name;
  }

  void add(const FlatTable& op) {
    auto index = op.number<std::uint32_t>(0, 0);
    std::vector<std::int32_t> inputs = op.integers(1);
    std::vector<std::int32_t> outputs = op.integers(2);
    if (index >= codes_.size() || inputs.empty() || outputs.size() != 1)
      bad_input("{}: an operator has no kind, no input or not one output", label_);
    auto found = values_.find(inputs[0]);
    if (found == values_.end()) bad_input("{}: an operator reads what nothing computes", label_);
    if (finished_) bad_input("{}: something follows the softmax", label_);
    const Value& x = found->second;
    Value result;
    switch (codes_[index]) {
      case kConvolution:
      case kDepthwise:
        if (inputs.size() != 3) bad_input("{}: a convolution has {} inputs instead of 3", label_, inputs.size());
        result = convolution(op, inputs, layer_name(outputs[0]), x, codes_[index] == kDepthwise);
        break;
      case kAveragePool:
        result = average(op, layer_name(outputs[0]), x);
        break;
      case kReshape:
      case kSqueeze:
        result = flat(x, shape_of(outputs[0]));
        break;
      case kSoftmax:
        finish(x);
        return;
      default:
        bad_input("{}: operator {} of TFLite is not supported", label_, codes_[index]);
    }
    values_[outputs[0]] = result;
  }

  static void require_map(const std::string& label, const Value& x) {
    if (x.shape.size() != 3) bad_input("{}: an operator wants a map and gets none", label);
  }

  Value convolution(const FlatTable& op, const std::vector<std::int32_t>& inputs, const std::string& name,
                    const Value& x, bool depthwise) {
    require_map(label_, x);
    FlatTable options = op.table(4);
    std::int64_t down = options.number<std::int32_t>(2, 1);
    std::int64_t right = options.number<std::int32_t>(1, 1);
    int activation = options.number<std::uint8_t>(depthwise ? 4 : 3, 0);
    int dilation = depthwise ? 5 : 4;
    if (down < 1 || right < 1) bad_input("{}: layer '{}' has a step of 0", label_, printable(name));
    if (options.number<std::int32_t>(dilation, 1) != 1 || options.number<std::int32_t>(dilation + 1, 1) != 1)
      bad_input("{}: layer '{}' is dilated, which is not supported", label_, printable(name));
    at::Tensor kernel = weight(inputs[1], 4);  // [out, H, W, in], or [1, H, W, out] if each channel has its own
    kernel = (depthwise ? kernel.permute({3, 0, 1, 2}) : kernel.permute({0, 3, 1, 2})).contiguous();
    std::int64_t channels = kernel.size(0);
    if (kernel.size(1) != (depthwise ? 1 : x.shape[0]) || (depthwise && channels != x.shape[0]))
      bad_input("{}: the weights of layer '{}' do not fit its input", label_, printable(name));
    bool pads = options.number<std::int8_t>(0, 0) == kSame;
    Padding rows = pads ? same_padding(x.shape[1], kernel.size(2), down) : Padding();
    Padding columns = pads ? same_padding(x.shape[2], kernel.size(3), right) : Padding();
    std::vector<std::int64_t> shape = {channels, windowed_side(x.shape[1], kernel.size(2), down, rows),
                                       windowed_side(x.shape[2], kernel.size(3), right, columns)};
    bool pixel = !depthwise && x.shape[1] == 1 && x.shape[2] == 1 && kernel.size(2) == 1 && kernel.size(3) == 1;
    if (pixel) return dense(name, kernel.flatten(1), weight(inputs[2], 1), x, activation);
    std::string w = out_.weight(name + ".weight", kernel);
    std::string b = out_.weight(name + ".bias", weight(inputs[2], 1));
    ::onnx::NodeProto& node = out_.node("Conv", name, {x.name, w, b});
    set_ints(node, "kernel_shape", {kernel.size(2), kernel.size(3)});
    set_ints(node, "strides", {down, right});
    set_ints(node, "pads", {rows.before, columns.before, rows.after, columns.after});
    set_int(node, "group", depthwise ? channels : 1);
    return {activated(name, activation), shape};
  }

  Value dense(const std::string& name, const at::Tensor& kernel, const at::Tensor& bias, const Value& x,
              int activation) {
    set_int(out_.node("Flatten", name + "/flat", {x.name}), "axis", 1);
    std::string w = out_.weight(name + ".weight", kernel);
    std::string b = out_.weight(name + ".bias", bias);
    set_int(out_.node("Gemm", name, {name + "/flat", w, b}), "transB", 1);
    return {activated(name, activation), {kernel.size(0)}};
  }

  std::string activated(const std::string& name, int activation) {
    if (activation == 0) return name;
    if (activation == kRelu) {
      out_.node("Relu", name + "/relu", {name});
      return name + "/relu";
    }
    if (activation != kRelu6)
      bad_input("{}: layer '{}' has activation {}, which is not supported", label_, printable(name), activation);
    std::string low = out_.constant(name + "/low", 0.0F);
    std::string high = out_.constant(name + "/high", 6.0F);
    out_.node("Clip", name + "/relu6", {name, low, high});
    return name + "/relu6";
  }

  Value average(const FlatTable& op, const std::string& name, const Value& x) {
    require_map(label_, x);
    FlatTable options = op.table(4);
    if (options.number<std::int32_t>(4, 0) != x.shape[1] || options.number<std::int32_t>(3, 0) != x.shape[2])
      bad_input("{}: only the average of a whole map is supported", label_);
    out_.node("GlobalAveragePool", name, {x.name});
    return {name, {x.shape[0], 1, 1}};
  }

  Value flat(const Value& x, const std::vector<std::int64_t>& shape) const {
    std::int64_t features = 1;
    for (std::int64_t side : x.shape) features *= side;
    if (x.shape.size() != 1 || shape.empty() || shape.back() != features)
      bad_input("{}: only a row of scores can be reshaped", label_);
    return x;
  }

  void finish(const Value& x) {
    if (x.shape.size() != 1) bad_input("{}: the softmax is not of a row of scores", label_);
    ::onnx::NodeProto& last = *out_.graph().mutable_node(out_.graph().node_size() - 1);
    if (last.output(0) != x.name) bad_input("{}: the softmax is not of the last layer", label_);
    out_.claim("logits");
    last.set_output(0, "logits");
    out_.output("logits", at::kFloat, {-1, x.shape[0]}, {"N"});
    finished_ = true;
  }

  const std::string& label_;
  const ModelCard& card_;
  FlatTable model_;
  onnx::GraphWriter out_;
  LayerNames names_;
  std::vector<FlatTable> buffers_, tensors_, operators_;
  std::vector<int> codes_;
  std::map<std::int32_t, Value> values_;
  bool finished_ = false;
};

}  // namespace

std::string tflite_as_onnx(std::string_view bytes, const std::string& label, const ModelCard& card) {
  return TfliteReader(bytes, label, card).convert();
}

}  // namespace galvani
