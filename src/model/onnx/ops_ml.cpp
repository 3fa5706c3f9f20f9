// Classic machine learning (ai.onnx.ml): trees, linear models, support vectors, what comes before and after them.
// Labels that are text are given as their positions.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "model/onnx/tensors.h"
#include "model/onnx/trees.h"

namespace galvani::onnx {

namespace {

using ::onnx::AttributeProto;

at::Tensor floats(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).to(at::kFloat);
}

// The input as float32, or as double if it is that.
std::string rows(Node& node, int i = 0) {
  std::string x = node.in(i);
  if (node.type(i) == at::kFloat || node.type(i) == at::kDouble || node.type(i) == at::kHalf) return x;
  return node.temporary(fmt::format("torch.to({}, {})", x, type_text(at::kFloat)));
}

std::string constant_like(Node& node, const std::vector<double>& values,
                          const std::vector<std::int64_t>& shape = {-1}) {
  at::ScalarType type = node.type(0) == at::kDouble ? at::kDouble : at::kFloat;
  return node.constant(floats(values).to(type).reshape(shape));
}

std::vector<std::int64_t> labels_of(const Node& node) {
  for (const char* name : {"classlabels_int64s", "classlabels_ints"}) {
    if (node.given(name)) return node.integers(name);
  }
  std::vector<std::int64_t> positions(node.texts("classlabels_strings").size());
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

std::string transformed(const Node& node, const std::string& scores) {
  std::string how = node.text("post_transform", "NONE");
  if (how == "NONE") return scores;
  if (how == "LOGISTIC") return fmt::format("torch.sigmoid({})", scores);
  if (how == "SOFTMAX") return fmt::format("torch.softmax({}, 1)", scores);
  if (how == "SOFTMAX_ZERO") return fmt::format("galvani_onnx.softmax_zero({})", scores);
  if (how == "PROBIT")
    return fmt::format("torch.mul(torch.erfinv(torch.sub(torch.mul({}, 2), 1)), 1.41421356)", scores);
  node.refuse("has an unknown attribute value for 'post_transform'");
}

// Output 0: the labels by their positions; output 1: the scores.
void out_labels(Node& node, const std::string& positions, const std::vector<std::int64_t>& labels,
                const std::string& scores) {
  std::string values = node.temporary(scores, "o");
  std::string named = node.constant(at::tensor(labels, at::kLong));
  node.out(fmt::format("torch.index_select({}, 0, {})", named, positions), at::kLong, 1);
  if (node.output_count() < 2) return;
  Value& result = node.results()[1];
  result.variable = values;
  result.type = at::kFloat;
  result.rank = 2;
}

std::string highest(Node& node, const std::string& scores) {
  return node.temporary(fmt::format("torch.argmax({}, 1)", scores));
}

// One score for two classes, [n, 1]: labels and [n, 2]. What follows is what ONNX Runtime does. `shares`: votes that
// are all positive are the share of the second class.
void out_binary(Node& node, const std::string& score, const std::vector<std::int64_t>& labels, const char* bound,
                bool shares) {
  std::string second = node.temporary(
      fmt::format("torch.to(torch.gt(torch.squeeze({}, 1), {}), {})", score, bound, type_text(at::kLong)));
  bool logistic = node.text("post_transform", "NONE") == "LOGISTIC";
  std::string first =
      shares && !logistic ? fmt::format("torch.rsub({}, 1)", score) : fmt::format("torch.neg({})", score);
  std::string both = node.temporary(fmt::format("torch.cat([{}, {}], 1)", first, score));
  out_labels(node, second, labels, logistic ? fmt::format("torch.sigmoid({})", both) : both);
}

std::string tree_sums(Node& node, const Trees& trees, std::int64_t outputs, std::int64_t how) {
  return node.temporary(
      fmt::format("galvani_onnx.trees({}, {}, {}, {}, {}, {}, {}, {}, {}, {})", rows(node), node.constant(trees.nodes),
                  node.constant(trees.splits), node.constant(trees.members), node.constant(trees.roots),
                  node.constant(trees.targets), node.constant(trees.weights), outputs, trees.features, how));
}

std::vector<double> base_values(const Node& node) {
  if (node.given("base_values_as_tensor")) {
    const auto* found = node.attribute("base_values_as_tensor", AttributeProto::TENSOR);
    at::Tensor values = TensorReader({}, "attribute").read(found->t()).to(at::kDouble).reshape({-1}).contiguous();
    return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
  }
  return node.reals("base_values");
}

std::string as_float(const std::string& x) {
  return fmt::format("torch.to({}, {})", x, type_text(at::kFloat));
}

void emit_tree_classifier(Node& node) {
  std::vector<std::int64_t> labels = labels_of(node);
  auto classes = static_cast<std::int64_t>(labels.size());
  if (classes < 2) node.refuse("has {} classes", classes);
  Trees trees = read_trees(node, "class", classes);
  std::vector<double> base = base_values(node);
  bool one = classes == 2 && trees.targets.numel() > 0 && trees.targets.eq(trees.targets[0]).all().item<bool>();
  std::string sums = tree_sums(node, trees, classes, kTreesSum);
  if (!one) {
    if (!base.empty()) {
      if (static_cast<std::int64_t>(base.size()) != classes)
        node.refuse("has {} base values for {} classes", base.size(), classes);
      sums = node.temporary(fmt::format("torch.add({}, {})", sums, node.constant(at::tensor(base, at::kDouble))));
    }
    std::string scores = node.temporary(as_float(sums));
    // A class that no leaf votes for is never chosen.
    at::Tensor never = at::ones({classes}, at::kBool);
    if (trees.targets.numel() > 0) never.index_fill_(0, trees.targets, false);
    std::string chosen = scores;
    if (base.empty() && never.any().item<bool>())
      chosen = node.temporary(fmt::format("torch.masked_fill({}, {}, float('-inf'))", scores, node.constant(never)));
    return out_labels(node, highest(node, chosen), labels, transformed(node, scores));
  }
  bool shares = trees.weights.ge(0).all().item<bool>();
  const char* bound = shares ? "0.5" : "0.0";
  if (trees.targets[0].item<std::int64_t>() == 1) {
    if (!base.empty()) node.refuse("has base values for a class without votes, which is not supported");
    std::string scores = node.temporary(as_float(sums));
    std::string second = node.temporary(
        fmt::format("torch.to(torch.gt(torch.select({}, 1, 1), {}), {})", scores, bound, type_text(at::kLong)));
    return out_labels(node, second, labels, transformed(node, scores));
  }
  std::string score = node.temporary(fmt::format("torch.slice({}, 1, 0, 1)", sums));
  if (base.size() > 2) node.refuse("has {} base values for {} classes", base.size(), classes);
  if (!base.empty()) score = node.temporary(fmt::format("torch.add({}, {})", score, number_text(base.back())));
  out_binary(node, node.temporary(as_float(score)), labels, bound, shares);
}

std::int64_t tree_outputs(const Node& node) {
  std::int64_t outputs = node.integer("n_targets", 1);
  if (outputs < 1 || outputs > 1 << 20) node.refuse("has {} targets", outputs);
  return outputs;
}

void emit_tree_regressor(Node& node) {
  std::int64_t outputs = tree_outputs(node);
  static const std::vector<std::string> kHow = {"AVERAGE", "SUM", "MIN", "MAX"};
  auto how = std::find(kHow.begin(), kHow.end(), node.text("aggregate_function", "SUM"));
  if (how == kHow.end()) node.refuse("has an unknown attribute value for 'aggregate_function'");
  std::string sums = tree_sums(node, read_trees(node, "target", outputs), outputs, how - kHow.begin());
  std::vector<double> base = base_values(node);
  if (!base.empty()) {
    if (static_cast<std::int64_t>(base.size()) != outputs)
      node.refuse("has {} base values for {} targets", base.size(), outputs);
    sums = node.temporary(fmt::format("torch.add({}, {})", sums, node.constant(at::tensor(base, at::kDouble))));
  }
  node.out(transformed(node, node.temporary(as_float(sums))), at::kFloat, 2);
}

void emit_tree_ensemble(Node& node) {
  std::int64_t outputs = tree_outputs(node);
  std::int64_t how = node.integer("aggregate_function", kTreesSum);
  if (how < kTreesAverage || how > kTreesMax) node.refuse("has an unknown attribute value for 'aggregate_function'");
  std::string sums = tree_sums(node, read_tree_ensemble(node, outputs), outputs, how);
  // NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT
  std::int64_t transform = node.integer("post_transform", 0);
  sums = node.temporary(
      fmt::format("torch.to({}, {})", sums, type_text(node.type(0) == at::kHalf ? at::kFloat : node.type(0))));
  if (transform < 0 || transform > 3) node.refuse("has an attribute value for 'post_transform' that is not supported");
  const char* texts[] = {"{}", "torch.softmax({}, 1)", "torch.sigmoid({})", "galvani_onnx.softmax_zero({})"};
  node.out(fmt::format(fmt::runtime(texts[transform]), sums), node.type(0), 2);
}

std::string linear(Node& node, std::int64_t outputs) {
  std::vector<double> weights = node.reals("coefficients"), bias = node.reals("intercepts");
  if (outputs < 1 || weights.empty() || weights.size() % static_cast<std::size_t>(outputs) != 0)
    node.refuse("has {} coefficients for {} outputs", weights.size(), outputs);
  if (!bias.empty() && static_cast<std::int64_t>(bias.size()) != outputs)
    node.refuse("has {} intercepts for {} outputs", bias.size(), outputs);
  std::string x = rows(node);
  std::string weight = constant_like(node, weights, {outputs, -1});
  return node.temporary(
      fmt::format("torch.linear({}, {}, {})", x, weight, bias.empty() ? "None" : constant_like(node, bias)));
}

void emit_linear_classifier(Node& node) {
  std::vector<std::int64_t> labels = labels_of(node);
  node.integer("multi_class", 0);
  auto outputs = static_cast<std::int64_t>(node.reals("intercepts").size());
  if (outputs == 0) outputs = static_cast<std::int64_t>(labels.size());
  std::string scores = node.temporary(as_float(linear(node, outputs)));
  if (outputs == 1 && labels.size() == 2) return out_binary(node, scores, labels, "0.0", true);
  if (static_cast<std::int64_t>(labels.size()) != outputs)
    node.refuse("has {} labels for {} outputs", labels.size(), outputs);
  out_labels(node, highest(node, scores), labels, transformed(node, scores));
}

void emit_linear_regressor(Node& node) {
  std::string y = linear(node, node.integer("targets", 1));
  node.out(transformed(node, node.temporary(as_float(y))), at::kFloat, 2);
}

void emit_svm_regressor(Node& node) {
  std::vector<double> weights = node.reals("coefficients"), shift = node.reals("rho");
  std::vector<double> parameters = node.reals("kernel_params"), vectors = node.reals("support_vectors");
  std::int64_t supports = node.integer("n_supports", 0);
  static const std::vector<std::string> kKernels = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  auto kernel = std::find(kKernels.begin(), kKernels.end(), node.text("kernel_type", "LINEAR"));
  if (kernel == kKernels.end()) node.refuse("has an unknown attribute value for 'kernel_type'");
  parameters.resize(3);
  if (shift.size() != 1) node.refuse("has {} values in 'rho' instead of 1", shift.size());
  std::string x = rows(node);
  std::string sums;
  if (supports > 0) {
    if (static_cast<std::int64_t>(weights.size()) != supports || vectors.size() % weights.size() != 0)
      node.refuse("has {} coefficients and {} numbers for {} vectors", weights.size(), vectors.size(), supports);
    std::string products = node.temporary(fmt::format(
        "galvani_onnx.kernel_products({}, {}, {}, {}, {}, {})", x, constant_like(node, vectors, {supports, -1}),
        kernel - kKernels.begin(), number_text(parameters[0]), number_text(parameters[1]), number_text(parameters[2])));
    sums = node.temporary(fmt::format("torch.matmul({}, {})", products, constant_like(node, weights, {-1, 1})));
  } else {
    sums = node.temporary(fmt::format("torch.matmul({}, {})", x, constant_like(node, weights, {-1, 1})));
  }
  std::string y = node.temporary(as_float(fmt::format("torch.add({}, {})", sums, number_text(shift[0]))));
  if (node.integer("one_class", 0) != 0) {
    std::string inside = node.temporary(as_float(fmt::format("torch.gt({}, 0)", y)));
    return node.out(fmt::format("torch.sub(torch.mul({}, 2), 1)", inside), at::kFloat, 2);
  }
  node.out(transformed(node, y), at::kFloat, 2);
}

void emit_scaler(Node& node) {
  std::string x = rows(node);
  std::string centred = node.temporary(fmt::format("torch.sub({}, {})", x, constant_like(node, node.reals("offset"))));
  node.out(as_float(fmt::format("torch.mul({}, {})", centred, constant_like(node, node.reals("scale")))), at::kFloat,
           node.rank(0));
}

void emit_normalizer(Node& node) {
  static const std::vector<std::string> kNorms = {"MAX", "L1", "L2"};
  auto norm = std::find(kNorms.begin(), kNorms.end(), node.text("norm", "MAX"));
  if (norm == kNorms.end()) node.refuse("has an unknown norm");
  std::string y = node.temporary(fmt::format("galvani_onnx.normalize_rows({}, {})", rows(node), norm - kNorms.begin()));
  node.out(as_float(y), at::kFloat, node.rank(0));
}

void emit_imputer(Node& node) {
  bool real = at::isFloatingType(node.type(0));
  std::string x = node.in(0);
  if (real) {
    std::string values = constant_like(node, node.reals("imputed_value_floats"));
    double replaced = node.real("replaced_value_float", 0);
    std::string gone = node.temporary(std::isnan(replaced) ? fmt::format("torch.isnan({})", x)
                                                           : fmt::format("torch.eq({}, {})", x, number_text(replaced)));
    return node.out(fmt::format("torch.where({}, {}, {})", gone, values, x), node.rank(0));
  }
  std::string values = node.constant(at::tensor(node.integers("imputed_value_int64s"), at::kLong).to(node.type(0)));
  std::string gone =
      node.temporary(fmt::format("torch.eq({}, {})", x, int_text(node.integer("replaced_value_int64", 0))));
  node.out(fmt::format("torch.where({}, {}, {})", gone, values, x), node.rank(0));
}

void emit_binarizer(Node& node) {
  node.out(fmt::format("torch.to(torch.gt({}, {}), {})", node.in(0), number_text(node.real("threshold", 0)),
                       type_text(node.type(0))),
           node.rank(0));
}

void emit_one_hot(Node& node) {
  if (node.given("cats_strings")) node.refuse("has categories that are text, which is not supported");
  if (node.integer("zeros", 1) == 0) node.refuse("fails at categories that it does not know, which is not supported");
  std::string categories = node.constant(at::tensor(node.integers("cats_int64s"), at::kLong));
  std::string x = node.temporary(fmt::format("torch.to({}, {})", node.in(0), type_text(at::kLong)));
  node.out(as_float(fmt::format("torch.eq(torch.unsqueeze({}, -1), {})", x, categories)), at::kFloat,
           node.rank(0) < 0 ? -1 : node.rank(0) + 1);
}

void emit_feature_extractor(Node& node) {
  node.out(fmt::format("galvani_onnx.pick_features({}, {})", node.in(0), node.in(1)),
           node.rank(0) < 0 ? -1 : std::max(node.rank(0), 2));
}

void emit_feature_vectorizer(Node& node) {
  node.given("inputdimensions");
  std::vector<std::string> parts;
  for (int i = 0; i < node.input_count(); ++i) parts.push_back(node.temporary(as_float(node.in(i))));
  node.out(fmt::format("galvani_onnx.join_features({})", list_text(parts)), at::kFloat, 2);
}

// Keys or values of a LabelEncoder; undefined if there are none of that name.
at::Tensor table(const Node& node, const std::string& name) {
  std::string longs = name + "_int64s", reals = name + "_floats", tensor = name + "_tensor", texts = name + "_strings";
  if (node.given(texts.c_str())) node.refuse("maps texts, which is not supported");
  if (node.given(longs.c_str())) return at::tensor(node.integers(longs.c_str()), at::kLong);
  if (node.given(reals.c_str())) return floats(node.reals(reals.c_str()));
  if (!node.given(tensor.c_str())) node.refuse("has no '{}'", name);
  const auto& proto = node.attribute(tensor.c_str(), AttributeProto::TENSOR)->t();
  if (!scalar_type(proto.data_type()))
    node.refuse("maps the element type {}, which is not supported", type_name(proto.data_type()));
  return TensorReader({}, "attribute").read(proto).reshape({-1});
}

void emit_label_encoder(Node& node) {
  at::Tensor keys = table(node, "keys"), values = table(node, "values");
  if (keys.numel() != values.numel()) node.refuse("has {} keys and {} values", keys.numel(), values.numel());
  if (keys.scalar_type() != node.type(0))
    node.refuse("has keys of the element type {} for {}", c10::toString(keys.scalar_type()),
                c10::toString(node.type(0)));
  at::Tensor fallback = at::isFloatingType(values.scalar_type())
                            ? at::scalar_tensor(node.real("default_float", 0), values.options())
                            : at::scalar_tensor(node.integer("default_int64", -1), values.options());
  if (node.given("default_tensor")) {
    const auto& proto = node.attribute("default_tensor", AttributeProto::TENSOR)->t();
    fallback = TensorReader({}, "attribute").read(proto);
    if (fallback.numel() != 1 || fallback.scalar_type() != values.scalar_type())
      node.refuse("has a default that is none of its values' kind");
    fallback = fallback.reshape({});
  }
  // Of a key that comes twice the last counts: sorted stably, backwards, it is the first.
  at::Tensor order = std::get<1>(keys.flip({0}).sort(/*stable=*/true, 0, false));
  node.out(fmt::format("galvani_onnx.look_up({}, {}, {}, {})", node.in(0),
                       node.constant(keys.flip({0}).index_select(0, order)),
                       node.constant(values.flip({0}).index_select(0, order)), node.constant(fallback)),
           values.scalar_type(), node.rank(0));
}

// The map's values; its keys are the positions of the columns.
void emit_zip_map(Node& node) {
  labels_of(node);
  node.same_as(0);
}

}  // namespace

std::vector<Operator> ml_operators() {
  return {
      {"TreeEnsembleClassifier", 1, kNewestOpset, emit_tree_classifier},
      {"TreeEnsembleRegressor", 1, kNewestOpset, emit_tree_regressor},
      {"TreeEnsemble", 1, kNewestOpset, emit_tree_ensemble},
      {"LinearClassifier", 1, kNewestOpset, emit_linear_classifier},
      {"LinearRegressor", 1, kNewestOpset, emit_linear_regressor},
      {"SVMRegressor", 1, kNewestOpset, emit_svm_regressor},
      {"Scaler", 1, kNewestOpset, emit_scaler},
      {"Normalizer", 1, kNewestOpset, emit_normalizer},
      {"Imputer", 1, kNewestOpset, emit_imputer},
      {"Binarizer", 1, kNewestOpset, emit_binarizer},
      {"OneHotEncoder", 1, kNewestOpset, emit_one_hot},
      {"ArrayFeatureExtractor", 1, kNewestOpset, emit_feature_extractor, false, true},
      {"FeatureVectorizer", 1, kNewestOpset, emit_feature_vectorizer},
      {"LabelEncoder", 1, kNewestOpset, emit_label_encoder, false, true},
      {"ZipMap", 1, kNewestOpset, emit_zip_map, false, true},
  };
}

}  // namespace galvani::onnx
