#include "model/onnx/trees.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/onnx/tensors.h"

namespace galvani::onnx {

using ::onnx::AttributeProto;

namespace {

constexpr std::int64_t kMostFeatures = 1 << 24;

struct Entry {
  std::int64_t columns[kTreeColumns] = {};
  double split = 0;
};

// A list of floats, or of doubles in a tensor, which the versions allow one or both of.
std::vector<double> numbers(const Node& node, const std::string& name, const std::string& tensor) {
  const AttributeProto* found = nullptr;
  if (node.given(tensor.c_str())) found = node.attribute(tensor.c_str(), AttributeProto::TENSOR);
  if (found == nullptr) return node.given(name.c_str()) ? node.reals(name.c_str()) : std::vector<double>();
  at::Tensor values = TensorReader({}, "attribute").read(found->t()).to(at::kDouble).reshape({-1}).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

void check_length(const Node& node, const char* name, std::size_t length, std::size_t wanted) {
  if (length != wanted) node.refuse("has {} values in '{}' instead of {}", length, name, wanted);
}

void check_index(const Node& node, const char* what, std::int64_t index, std::int64_t count) {
  if (index < 0 || index >= count) node.refuse("names the {} {} of {}", what, index, count);
}

Trees packed(const Node& node, const std::vector<Entry>& entries, const std::vector<std::int64_t>& roots,
             const std::vector<double>& members, const std::vector<std::int64_t>& targets,
             const std::vector<double>& weights, std::int64_t outputs) {
  Trees trees;
  auto count = static_cast<std::int64_t>(entries.size());
  trees.nodes = at::empty({count, kTreeColumns}, at::kLong);
  trees.splits = at::empty({count}, at::kDouble);
  for (std::int64_t i = 0; i < count; ++i) {
    const Entry& entry = entries[i];
    if (entry.columns[kTreeMode] != kTreeLeaf) {
      check_index(node, "node", entry.columns[kTreeYes], count);
      check_index(node, "node", entry.columns[kTreeNo], count);
      check_index(node, "feature", entry.columns[kTreeFeature], kMostFeatures);
      trees.features = std::max(trees.features, entry.columns[kTreeFeature] + 1);
    }
    std::copy(entry.columns, entry.columns + kTreeColumns, trees.nodes.data_ptr<std::int64_t>() + i * kTreeColumns);
    trees.splits.data_ptr<double>()[i] = entry.split;
  }
  for (std::int64_t root : roots) check_index(node, "root", root, count);
  for (std::int64_t target : targets) check_index(node, "target", target, outputs);
  trees.roots = at::tensor(roots, at::kLong);
  trees.members = at::tensor(members, at::kDouble);
  trees.targets = at::tensor(targets, at::kLong);
  trees.weights = at::tensor(weights, at::kDouble);
  return trees;
}

std::int64_t mode_named(const Node& node, const std::string& name) {
  static const std::vector<std::string> kNames = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                                  "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end() || name == "BRANCH_MEMBER")
    node.refuse("has nodes of the mode '{}', which is not supported", printable(name));
  return found - kNames.begin();
}

}  // namespace

Trees read_trees(const Node& node, const char* votes, std::int64_t outputs) {
  std::string vote = votes;
  std::vector<std::int64_t> tree = node.integers("nodes_treeids"), id = node.integers("nodes_nodeids");
  std::vector<std::int64_t> yes = node.integers("nodes_truenodeids"), no = node.integers("nodes_falsenodeids");
  std::vector<std::int64_t> feature = node.integers("nodes_featureids");
  std::vector<std::int64_t> missing = node.integers("nodes_missing_value_tracks_true");
  std::vector<std::string> modes = node.texts("nodes_modes");
  std::vector<double> splits = numbers(node, "nodes_values", "nodes_values_as_tensor");
  for (const char* unused : {"nodes_hitrates", "nodes_hitrates_as_tensor"}) node.given(unused);
  std::size_t count = tree.size();
  if (missing.empty()) missing.resize(count);
  check_length(node, "nodes_nodeids", id.size(), count);
  check_length(node, "nodes_truenodeids", yes.size(), count);
  check_length(node, "nodes_falsenodeids", no.size(), count);
  check_length(node, "nodes_featureids", feature.size(), count);
  check_length(node, "nodes_missing_value_tracks_true", missing.size(), count);
  check_length(node, "nodes_modes", modes.size(), count);
  check_length(node, "nodes_values", splits.size(), count);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    if (!places.emplace(std::pair(tree[i], id[i]), i).second)
      node.refuse("has two nodes {} in its tree {}", id[i], tree[i]);
  }
  auto place = [&](std::int64_t of, std::int64_t number) {
    auto found = places.find({of, number});
    if (found == places.end()) node.refuse("names the node {} of its tree {}, which there is not", number, of);
    return found->second;
  };
  std::vector<Entry> entries(count);
  std::vector<bool> child(count);
  for (std::size_t i = 0; i < count; ++i) {
    Entry& entry = entries[i];
    entry.columns[kTreeFeature] = feature[i];
    entry.columns[kTreeMode] = mode_named(node, modes[i]);
    entry.columns[kTreeMissing] = missing[i];
    entry.split = splits[i];
    if (entry.columns[kTreeMode] == kTreeLeaf) continue;
    entry.columns[kTreeYes] = place(tree[i], yes[i]);
    entry.columns[kTreeNo] = place(tree[i], no[i]);
    child[entry.columns[kTreeYes]] = child[entry.columns[kTreeNo]] = true;
  }
  std::vector<std::int64_t> roots;
  std::set<std::int64_t> rooted;
  for (std::size_t i = 0; i < count; ++i) {
    if (child[i]) continue;
    if (!rooted.insert(tree[i]).second) node.refuse("has two roots in its tree {}", tree[i]);
    roots.push_back(static_cast<std::int64_t>(i));
  }
  std::set<std::int64_t> all(tree.begin(), tree.end());
  if (rooted.size() != all.size()) node.refuse("has a tree without a root");

  std::vector<std::int64_t> vote_tree = node.integers((vote + "_treeids").c_str());
  std::vector<std::int64_t> vote_node = node.integers((vote + "_nodeids").c_str());
  std::vector<std::int64_t> vote_id = node.integers((vote + "_ids").c_str());
  std::vector<double> vote_weight = numbers(node, vote + "_weights", vote + "_weights_as_tensor");
  check_length(node, "nodes of votes", vote_node.size(), vote_tree.size());
  check_length(node, "targets of votes", vote_id.size(), vote_tree.size());
  check_length(node, "weights of votes", vote_weight.size(), vote_tree.size());
  std::vector<std::vector<std::size_t>> of_leaf(count);
  for (std::size_t i = 0; i < vote_tree.size(); ++i) of_leaf[place(vote_tree[i], vote_node[i])].push_back(i);
  std::vector<std::int64_t> targets;
  std::vector<double> weights;
  for (std::size_t i = 0; i < count; ++i) {
    if (entries[i].columns[kTreeMode] != kTreeLeaf) continue;
    entries[i].columns[kTreeBegin] = static_cast<std::int64_t>(targets.size());
    for (std::size_t from : of_leaf[i]) {
      targets.push_back(vote_id[from]);
      weights.push_back(vote_weight[from]);
    }
    entries[i].columns[kTreeEnd] = static_cast<std::int64_t>(targets.size());
  }
  return packed(node, entries, roots, {}, targets, weights, outputs);
}

Trees read_tree_ensemble(const Node& node, std::int64_t outputs) {
  std::vector<std::int64_t> feature = node.integers("nodes_featureids");
  std::vector<std::int64_t> yes = node.integers("nodes_truenodeids"), no = node.integers("nodes_falsenodeids");
  std::vector<std::int64_t> yes_leaf = node.integers("nodes_trueleafs"), no_leaf = node.integers("nodes_falseleafs");
  std::vector<std::int64_t> missing = node.integers("nodes_missing_value_tracks_true");
  std::vector<std::int64_t> targets = node.integers("leaf_targetids"), roots = node.integers("tree_roots");
  std::vector<double> modes = numbers(node, "", "nodes_modes"), splits = numbers(node, "", "nodes_splits");
  std::vector<double> weights = numbers(node, "", "leaf_weights"), sets = numbers(node, "", "membership_values");
  node.given("nodes_hitrates");
  std::size_t count = feature.size();
  auto leaves = static_cast<std::int64_t>(targets.size());
  if (missing.empty()) missing.resize(count);
  check_length(node, "nodes_truenodeids", yes.size(), count);
  check_length(node, "nodes_falsenodeids", no.size(), count);
  check_length(node, "nodes_trueleafs", yes_leaf.size(), count);
  check_length(node, "nodes_falseleafs", no_leaf.size(), count);
  check_length(node, "nodes_missing_value_tracks_true", missing.size(), count);
  check_length(node, "nodes_modes", modes.size(), count);
  check_length(node, "nodes_splits", splits.size(), count);
  check_length(node, "leaf_weights", weights.size(), targets.size());
  std::vector<Entry> entries(count + targets.size());
  auto below = [&](std::int64_t index, bool leaf) {
    check_index(node, leaf ? "leaf" : "node", index, leaf ? leaves : static_cast<std::int64_t>(count));
    return leaf ? static_cast<std::int64_t>(count) + index : index;
  };
  std::size_t member = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Entry& entry = entries[i];
    if (!(modes[i] >= 0 && modes[i] <= kTreeMember)) node.refuse("has nodes of the mode {}", modes[i]);
    entry.columns[kTreeFeature] = feature[i];
    entry.columns[kTreeMode] = static_cast<std::int64_t>(modes[i]);
    entry.columns[kTreeYes] = below(yes[i], yes_leaf[i] != 0);
    entry.columns[kTreeNo] = below(no[i], no_leaf[i] != 0);
    entry.columns[kTreeMissing] = missing[i];
    entry.split = splits[i];
    if (entry.columns[kTreeMode] != kTreeMember) continue;
    entry.columns[kTreeBegin] = static_cast<std::int64_t>(member);
    while (member < sets.size() && !std::isnan(sets[member])) ++member;
    entry.columns[kTreeEnd] = static_cast<std::int64_t>(member);
    if (member < sets.size()) ++member;
  }
  for (std::int64_t i = 0; i < leaves; ++i) {
    std::int64_t* columns = entries[count + i].columns;
    columns[kTreeMode] = kTreeLeaf;
    columns[kTreeBegin] = i;
    columns[kTreeEnd] = i + 1;
  }
  return packed(node, entries, roots, sets, targets, weights, outputs);
}

}  // namespace galvani::onnx
