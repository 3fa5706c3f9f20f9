#include "model/narrow_convolutions.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include "model/graph_tools.h"
#include "model/input_gradient.h"

namespace galvani {
namespace {

constexpr std::int64_t kNarrow = InputGradient::kMostChannels;  // beyond, oneDNN is faster
constexpr std::int64_t kMostMargin = std::int64_t{1} << 18;     // numbers: what a core has at hand

using torch::autograd::AutogradContext;

using Numbers = std::vector<std::int64_t>;

// Our own loops, for what they can do; nothing otherwise.
at::Tensor direct_gradient(const at::Tensor& gradient, const at::Tensor& weight, const Numbers& size,
                           const Numbers& stride, const Numbers& padding, const Numbers& dilation,
                           std::int64_t groups) {
  const Numbers one = {1, 1};
  if (stride != one || dilation != one || groups != 1 || gradient.dim() != 4 || gradient.scalar_type() != at::kFloat ||
      weight.scalar_type() != at::kFloat || weight.size(1) > kNarrow || padding[0] >= weight.size(2) ||
      padding[1] >= weight.size(3))
    return {};
  at::Tensor from = gradient.contiguous(), kernel = weight.contiguous();
  at::Tensor result = at::empty({from.size(0), kernel.size(1), size[0], size[1]}, at::kFloat);
  InputGradient loops{};
  loops.of_output = from.data_ptr<float>();
  loops.weight = kernel.data_ptr<float>();
  loops.of_input = result.data_ptr<float>();
  loops.count = from.size(0);
  loops.outputs = kernel.size(0);
  loops.channels = kernel.size(1);
  loops.height = size[0];
  loops.width = size[1];
  loops.kernel_height = kernel.size(2);
  loops.kernel_width = kernel.size(3);
  loops.top = padding[0];
  loops.left = padding[1];
  if (loops.padded_numbers() > kMostMargin) return {};
  at::Tensor padded = at::zeros({loops.padded_numbers()}, at::kFloat);
  loops.padded = padded.data_ptr<float>();
  loops.compute();
  return result;
}

class NarrowConvolution : public torch::autograd::Function<NarrowConvolution> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const c10::optional<at::Tensor>& bias, const std::vector<std::int64_t>& stride,
                            const std::vector<std::int64_t>& padding, const std::vector<std::int64_t>& dilation,
                            std::int64_t groups) {
    context->save_for_backward({weight});
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    context->saved_data["dilation"] = dilation;
    context->saved_data["groups"] = groups;
    context->saved_data["size"] = std::vector<std::int64_t>{x.size(-2), x.size(-1)};
    return at::conv2d(x, weight, bias, stride, padding, dilation, groups);
  }

  static torch::autograd::variable_list backward(AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    at::Tensor weight = context->get_saved_variables()[0];
    auto list = [&](const char* name) { return context->saved_data[name].toIntVector(); };
    Numbers stride = list("stride"), padding = list("padding"), dilation = list("dilation"), size = list("size"),
            rest(2);
    std::int64_t groups = context->saved_data["groups"].toInt();
    at::Tensor direct = direct_gradient(gradients[0], weight, size, stride, padding, dilation, groups);
    if (direct.defined()) return {direct, {}, {}, {}, {}, {}, {}};
    // Rows and columns at the end that no window reached.
    for (std::size_t axis = 0; axis < 2; ++axis) {
      auto dim = static_cast<std::int64_t>(axis);
      std::int64_t window = dilation[axis] * (weight.size(2 + dim) - 1) + 1;
      rest[axis] = size[axis] + 2 * padding[axis] - window - (gradients[0].size(dim - 2) - 1) * stride[axis];
    }
    at::Tensor of_input = at::conv_transpose2d(gradients[0], weight, {}, stride, padding, rest, groups, dilation);
    return {of_input, {}, {}, {}, {}, {}, {}};
  }
};

c10::Symbol narrow_symbol() {
  static const torch::jit::RegisterOperators registered({torch::jit::Operator(
      "galvani::narrow_convolution(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
      "int groups) -> Tensor",
      [](torch::jit::Stack& stack) {
        std::int64_t groups = torch::jit::pop(stack).toInt();
        std::vector<std::int64_t> dilation = torch::jit::pop(stack).toIntVector();
        std::vector<std::int64_t> padding = torch::jit::pop(stack).toIntVector();
        std::vector<std::int64_t> stride = torch::jit::pop(stack).toIntVector();
        auto bias = torch::jit::pop(stack).toOptional<at::Tensor>();
        at::Tensor weight = torch::jit::pop(stack).toTensor();
        at::Tensor x = torch::jit::pop(stack).toTensor();
        torch::jit::push(stack, narrow_convolution(x, weight, bias, stride, padding, dilation, groups));
      },
      c10::AliasAnalysisKind::FROM_SCHEMA)});
  return c10::Symbol::fromQualString("galvani::narrow_convolution");
}

}  // namespace

at::Tensor narrow_convolution(const at::Tensor& x, const at::Tensor& weight, const c10::optional<at::Tensor>& bias,
                              const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& padding,
                              const std::vector<std::int64_t>& dilation, std::int64_t groups) {
  return NarrowConvolution::apply(x, weight, bias, stride, padding, dilation, groups);
}

std::int64_t replace_narrow_convolutions(torch::jit::Graph& graph, const torch::jit::Module& module) {
  std::int64_t count = 0;
  std::vector<torch::jit::Node*> nodes(graph.nodes().begin(), graph.nodes().end());
  for (torch::jit::Node* node : nodes) {
    std::optional<LinearLayer> layer = read_linear(node, module);
    if (!layer || layer->dense || layer->weight.size(1) * layer->groups > kNarrow) continue;
    torch::jit::WithInsertPoint here(node);
    torch::jit::Node* ours = graph.create(narrow_symbol(),
                                          {node->input(0), node->input(1), node->input(2),
                                           graph.insertConstant(layer->stride), graph.insertConstant(layer->padding),
                                           graph.insertConstant(layer->dilation), graph.insertConstant(layer->groups)},
                                          1);
    ours->insertBefore(node);
    ours->copyMetadata(node);
    ours->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(ours->output());
    node->destroy();
    ++count;
  }
  return count;
}

}  // namespace galvani
