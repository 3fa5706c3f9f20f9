#include "model/random_layers.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "galvani/base/error.h"
#include "model/graph_tools.h"

namespace galvani {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

thread_local const RandomScope* random_scope = nullptr;

enum DropoutKind : std::int64_t { drop_values = 0, drop_channels = 1, drop_to_alpha = 2, drop_channels_to_alpha = 3 };
constexpr std::int64_t kFirstNoise = std::int64_t{1} << 32;  // sites of noise are numbered apart from dropout's
enum NoiseKind : std::int64_t { uniform_noise = 0, normal_noise = 1 };

const std::map<std::string, DropoutKind>& dropouts() {
  static const std::map<std::string, DropoutKind> kinds = {{"dropout", drop_values},
                                                           {"dropout_", drop_values},
                                                           {"feature_dropout", drop_channels},
                                                           {"feature_dropout_", drop_channels},
                                                           {"alpha_dropout", drop_to_alpha},
                                                           {"alpha_dropout_", drop_to_alpha},
                                                           {"feature_alpha_dropout", drop_channels_to_alpha},
                                                           {"feature_alpha_dropout_", drop_channels_to_alpha}};
  return kinds;
}

// Sources of random numbers: those we draw ourselves, and those we cannot.
bool is_known_noise(const Node* node) {
  static const std::set<std::string> kNames = {"rand", "randn", "rand_like", "randn_like", "bernoulli"};
  std::string op = operator_name(node);
  if (!node->kind().is_aten() || kNames.count(op) == 0) return false;
  return op != "bernoulli" || node->inputs().size() == 2;
}

bool is_other_noise(const Node* node) {
  // LibTorch has most of them in place and, made from that, as a function of the same name without the underscore.
  static const std::set<std::string> kNames = {"bernoulli", "binomial",   "cauchy",      "exponential",
                                               "geometric", "log_normal", "multinomial", "native_dropout",
                                               "normal",    "poisson",    "randint",     "randint_like",
                                               "randperm",  "random",     "uniform",     "normal_functional"};
  std::string name = operator_name(node);
  if (!name.empty() && name.back() == '_') name.pop_back();
  return node->kind().is_aten() && kNames.count(name) != 0 && !is_known_noise(node);
}

bool is_dropout(const Node* node) {
  return node->kind().is_aten() && dropouts().count(operator_name(node)) != 0;
}

}  // namespace

// Fills tensors from the scope of the calling thread.
struct RandomDraw {
  // `fill_with` is Rng::fill_uniform or fill_normal. [...] float, contiguous.
  static at::Tensor fill(at::IntArrayRef shape, std::int64_t site, void (Rng::*fill_with)(float*, std::size_t)) {
    at::Tensor result = at::empty(shape);
    if (result.numel() == 0) return result;
    auto* out = result.data_ptr<float>();
    auto id = static_cast<std::uint64_t>(site);
    if (random_scope == nullptr) {
      RandomScope own(RandomLayers(), 0, shape.empty() ? 1 : shape[0]);
      return fill(shape, site, fill_with);
    }
    const Rng& stream = random_scope->stream_;
    const std::vector<std::int64_t>& numbers = random_scope->numbers_;
    auto rows = static_cast<std::int64_t>(numbers.size());
    if (rows == 0 || shape.empty() || shape[0] % rows != 0) {
      // A micro-batch of training, or a value that has no part for each input: drawn as a whole.
      Rng own = (rows == 0 ? stream : stream.derive("batch").derive(static_cast<std::uint64_t>(numbers[0]))).derive(id);
      (own.*fill_with)(out, static_cast<std::size_t>(result.numel()));
      return result;
    }
    std::int64_t each = result.numel() / rows;
    for (std::int64_t r = 0; r < rows; ++r) {
      Rng own = stream.derive({static_cast<std::uint64_t>(numbers[static_cast<std::size_t>(r)]), id});
      (own.*fill_with)(out + r * each, static_cast<std::size_t>(each));
    }
    return result;
  }
};

namespace {

// Dropout by `kind`. SELU's keep mean and variance (Klambauer et al. 2017): what is dropped becomes alpha', then all is
// scaled and shifted.
at::Tensor draw_dropout(const at::Tensor& x, double p, bool train, std::int64_t site, std::int64_t kind) {
  if (!train || p <= 0) return x;
  bool to_alpha = kind == drop_to_alpha || kind == drop_channels_to_alpha;
  if (p >= 1) return x * 0;
  std::vector<std::int64_t> shape = x.sizes().vec();
  if (kind == drop_channels || kind == drop_channels_to_alpha) {
    for (std::size_t d = 2; d < shape.size(); ++d) shape[d] = 1;
  }
  at::Tensor mask = RandomDraw::fill(shape, site, &Rng::fill_uniform);
  auto* m = mask.data_ptr<float>();
  auto keep = static_cast<float>(1 - p);
  float kept = to_alpha ? 1 : 1 / keep;
  for (std::int64_t i = 0; i < mask.numel(); ++i) m[i] = m[i] < keep ? kept : 0.0F;
  if (!to_alpha) return x * mask;
  constexpr double kAlpha = 1.7580993408473766;
  double scale = 1 / std::sqrt((1 - p) * (1 + p * kAlpha * kAlpha));
  return (x * mask + (mask - 1) * kAlpha) * scale + kAlpha * p * scale;
}

at::Tensor draw_noise(at::IntArrayRef shape, std::int64_t site, std::int64_t kind, const at::TensorOptions& options) {
  at::Tensor values = RandomDraw::fill(shape, site, kind == normal_noise ? &Rng::fill_normal : &Rng::fill_uniform);
  return values.to(options.dtype());
}

at::Tensor draw_noise_like(const at::Tensor& like, std::int64_t site, std::int64_t kind) {
  return draw_noise(like.sizes(), site, kind, like.options());
}

at::Tensor draw_noise_of(const std::vector<std::int64_t>& size, std::int64_t site, std::int64_t kind) {
  return draw_noise(size, site, kind, at::TensorOptions(at::kFloat));
}

at::Tensor draw_bernoulli(const at::Tensor& p, std::int64_t site) {
  return RandomDraw::fill(p.sizes(), site, &Rng::fill_uniform).lt(p.detach()).to(p.scalar_type());
}

void register_random_layers() {
  static const auto registered =
      torch::RegisterOperators()
          .op("galvani::dropout(Tensor x, float p, bool train, int site, int kind) -> Tensor", &draw_dropout)
          .op("galvani::noise_like(Tensor like, int site, int kind) -> Tensor", &draw_noise_like)
          .op("galvani::noise(int[] size, int site, int kind) -> Tensor", &draw_noise_of)
          .op("galvani::bernoulli(Tensor p, int site) -> Tensor", &draw_bernoulli);
}

struct Replacing {
  Graph& graph;
  RandomMode mode;
  const std::string& label;
  std::int64_t dropout_site = 0;
  std::int64_t noise_site = kFirstNoise;

  void replace(Node* node, const char* op, const std::vector<Value*>& inputs) const {
    Node* ours = graph.create(c10::Symbol::fromQualString(op), inputs, 1);
    ours->insertBefore(node);
    ours->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(ours->output());
    node->destroy();
  }

  void visit(Block& block) {
    std::vector<Node*> nodes(block.nodes().begin(), block.nodes().end());
    for (Node* node : nodes) {
      for (Block* inner : node->blocks()) visit(*inner);
      if (mode == RandomMode::awake && is_other_noise(node))
        bad_input("{}: draws random numbers by '{}', which cannot be repeated", label, operator_name(node));
      torch::jit::WithInsertPoint here(node);
      if (mode != RandomMode::noise && is_dropout(node)) {
        Value* train = mode == RandomMode::awake ? graph.insertConstant(true) : node->input(2);
        Value* id = graph.insertConstant(dropout_site++);
        Value* kind = graph.insertConstant(static_cast<std::int64_t>(dropouts().at(operator_name(node))));
        replace(node, "galvani::dropout", {node->input(0), node->input(1), train, id, kind});
      } else if (is_known_noise(node)) {
        std::string name = operator_name(node);
        Value* id = graph.insertConstant(noise_site++);
        bool normal = name == "randn" || name == "randn_like";
        if (name == "bernoulli") {
          replace(node, "galvani::bernoulli", {node->input(0), id});
          continue;
        }
        Value* kind = graph.insertConstant(static_cast<std::int64_t>(normal ? normal_noise : uniform_noise));
        bool like = name == "rand_like" || name == "randn_like";
        replace(node, like ? "galvani::noise_like" : "galvani::noise", {node->input(0), id, kind});
      }
    }
  }
};

std::int64_t count_random(const Block& block) {
  std::int64_t count = 0;
  for (const Node* node : block.nodes()) {
    for (const Block* inner : node->blocks()) count += count_random(*inner);
    count += is_dropout(node) || draws_noise(node) ? 1 : 0;
  }
  return count;
}

}  // namespace

bool draws_noise(const Node* node) {
  return is_known_noise(node) || is_other_noise(node);
}

RandomScope::RandomScope(const Rng& stream) : stream_(stream), outer_(random_scope) {
  random_scope = this;
}

RandomScope::RandomScope(const RandomLayers& random, std::int64_t first, std::int64_t count)
    : RandomScope(Rng(random.seed).derive("random layers")) {
  for (std::int64_t i = 0; i < count; ++i) numbers_.push_back(random.number(first + i));
}

RandomScope::~RandomScope() {
  random_scope = outer_;
}

std::int64_t RandomLayers::number(std::int64_t i) const {
  if (rows.empty()) return first_row + i;
  // Rows beyond the last are padding.
  return rows[static_cast<std::size_t>(std::min<std::int64_t>(i, static_cast<std::int64_t>(rows.size()) - 1))];
}

std::int64_t count_random_layers(const Graph& graph) {
  return count_random(*graph.block());
}

void draw_from_scope(Graph& graph, RandomMode mode, const std::string& label) {
  register_random_layers();
  Replacing{graph, mode, label}.visit(*graph.block());
}

}  // namespace galvani
