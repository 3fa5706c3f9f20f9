#include "model/rebatch.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "galvani/base/limits.h"
#include "galvani/base/log.h"
#include "galvani/base/runtime.h"
#include "model/graph_tools.h"
#include "model/limits.h"

namespace galvani {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// Thrown and caught in this file: the graph does something that is not understood.
struct NotFollowed {
  std::string why;
};

// The images lie in this axis, each `outer` times: the axis is outer · B · inner long.
struct ImageAxis {
  std::int64_t axis = 0;
  std::int64_t outer = 1;
};

std::int64_t product(c10::IntArrayRef sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Of a value with the images in `place`: how many elements lie in front of the axis B, if it were one of its own.
std::int64_t in_front(c10::IntArrayRef sizes, const ImageAxis& place) {
  return product(sizes.slice(0, static_cast<std::size_t>(place.axis))) * place.outer;
}

// Where the images lie after the elements were given another shape, in the same order. Between two axes the images may
// belong to either; an axis of one is meant for them, the last axis, of features, is not.
ImageAxis place_in_shape(c10::IntArrayRef sizes, std::int64_t front) {
  std::optional<ImageAxis> best;
  int best_rank = 0;
  std::int64_t before = 1;
  auto rank = static_cast<std::int64_t>(sizes.size());
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    std::int64_t size = sizes[static_cast<std::size_t>(axis)];
    std::int64_t outer = before > 0 && front % before == 0 ? front / before : 0;
    if (outer > 0 && size % outer == 0) {
      bool last = axis == rank - 1 && rank > 1;
      int worth = size == 1 ? 4 : last ? 1 : outer == 1 ? 3 : 2;
      if (worth > best_rank) {
        best = ImageAxis{axis, outer};
        best_rank = worth;
      }
    }
    before *= size;
  }
  if (!best) throw NotFollowed{"the images are spread over several axes"};
  return *best;
}

bool is_one_of(const Node* node, const std::set<std::string>& names) {
  return names.count(operator_name(node)) != 0;
}

bool gives_shape(const Node* node) {
  static const std::set<std::string> kNames = {"view", "reshape", "_unsafe_view"};
  return is_one_of(node, kNames);
}

bool reads_shape_only(const Node* node) {
  static const std::set<std::string> kNames = {"size", "shape", "dim", "numel", "ndimension"};
  return is_one_of(node, kNames);
}

bool keeps_order(const Node* node) {
  static const std::set<std::string> kNames = {"flatten", "squeeze", "unsqueeze", "contiguous", "clone", "unflatten"};
  return is_one_of(node, kNames);
}

class Rebatcher {
 public:
  Rebatcher(std::shared_ptr<Graph> graph, const c10::IValue& self, const at::Tensor& two) : graph_(std::move(graph)) {
    one_[graph_->inputs()[0]] = self;
    Value* image = graph_->inputs()[1];
    one_[image] = two.narrow(0, 0, 1);
    two_[image] = two;
    place_[image] = {};
    for (Node* node : graph_->nodes()) {
      for (const Value* input : node->inputs()) ++readers_[input];
    }
    for (const Value* output : graph_->outputs()) ++readers_[output];
  }

  void run() {
    std::vector<Node*> nodes(graph_->nodes().begin(), graph_->nodes().end());
    for (Node* node : nodes) {
      check_step();
      if (!node->blocks().empty()) throw NotFollowed{"it has loops or branches"};
      follow(node);
      for (const Value* input : node->inputs()) release(input);
    }
    for (const Value* output : graph_->outputs()) {
      auto place = place_.find(output);
      if (place == place_.end() || place->second.axis != 0 || place->second.outer != 1)
        throw NotFollowed{"its result is not one row for each image"};
    }
    write();
  }

 private:
  using Values = std::unordered_map<const Value*, c10::IValue>;

  bool batched(const Value* value) const { return place_.count(value) != 0; }

  void release(const Value* value) {
    if (--readers_[value] > 0) return;
    one_.erase(value);
    two_.erase(value);
  }

  const c10::IValue& at_two(const Value* value) const { return batched(value) ? two_.at(value) : one_.at(value); }

  std::vector<c10::IValue> evaluate(Node* node, const std::vector<c10::IValue>& inputs) const {
    switch (node->kind()) {
      case c10::prim::Constant:
        return {torch::jit::toIValue(node->output()).value()};
      case c10::prim::GetAttr:
        return {inputs.at(0).toObject()->getAttr(node->s(c10::attr::name))};
      case c10::prim::ListConstruct: {
        c10::impl::GenericList list(node->output()->type()->expectRef<c10::ListType>().getElementType());
        for (const c10::IValue& input : inputs) list.push_back(input);
        return {list};
      }
      case c10::prim::ListUnpack:
        return inputs.at(0).toListRef().vec();
      case c10::prim::TupleConstruct:
        return {c10::ivalue::Tuple::create(inputs)};
      case c10::prim::TupleUnpack:
        return inputs.at(0).toTupleRef().elements().vec();
      default:
        break;
    }
    torch::jit::Stack stack = inputs;
    node->getOperation()(stack);
    return stack;
  }

  std::vector<c10::IValue> inputs_of(const Node* node, bool two) const {
    std::vector<c10::IValue> result;
    for (const Value* input : node->inputs()) result.push_back(two ? at_two(input) : one_.at(input));
    return result;
  }

  void keep(Node* node, std::vector<c10::IValue> values, Values& where) {
    if (values.size() != node->outputs().size()) throw NotFollowed{"an operator gives an unusual result"};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (readers_.count(node->output(i)) != 0) where[node->output(i)] = std::move(values[i]);
    }
  }

  void follow(Node* node) {
    const Value* data = nullptr;  // the first input that holds images
    for (const Value* input : node->inputs()) {
      if (data == nullptr && batched(input)) data = input;
    }
    std::vector<c10::IValue> alone = evaluate(node, inputs_of(node, false));
    note_constants(node, data != nullptr);
    if (data == nullptr || reads_shape_only(node)) return keep(node, std::move(alone), one_);
    bool list_of_images = node->kind() == c10::prim::ListConstruct;
    std::vector<c10::IValue> together;
    if (gives_shape(node) || operator_name(node) == "expand") {
      together = follow_shape(node, data, alone.at(0).toTensor().sizes());
    } else if (node->kind() == c10::aten::cat) {
      together = follow_cat(node);
    } else {
      together = evaluate(node, inputs_of(node, true));
      for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        if (list_of_images || readers_.count(node->output(i)) == 0) continue;
        place_[node->output(i)] = found_place(node, data, alone.at(i), together.at(i));
      }
    }
    if (list_of_images) place_[node->output()] = place_.at(data);
    keep(node, std::move(together), two_);
    keep(node, std::move(alone), one_);
  }

  // Numbers that come from shapes alone, such as the mask of shifted windows, need not be computed in every pass.
  void note_constants(Node* node, bool holds_images) {
    bool own = node->kind() == c10::prim::GetAttr;
    bool fixed = own ? !holds_weights(node) : !holds_images || reads_shape_only(node);
    for (std::size_t i = 0; i < node->inputs().size() && !own; ++i) {
      const Value* input = node->input(i);
      fixed = fixed && (constant_.count(input) != 0 || (reads_shape_only(node) && batched(input)));
    }
    if (fixed) {
      for (const Value* output : node->outputs()) constant_.insert(output);
      return;
    }
    constexpr std::int64_t kMostFolded = std::int64_t{1} << 22;
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      const Value* input = node->input(i);
      c10::Symbol kind = input->node()->kind();
      if (constant_.count(input) == 0 || kind == c10::prim::Constant || kind == c10::prim::GetAttr) continue;
      const c10::IValue& value = one_.at(input);
      bool small = value.isTensor() ? value.toTensor().numel() <= kMostFolded : value.isInt() || value.isIntList();
      if (small) folded_.push_back({node, i, value});
    }
  }

  // Whether an attribute is something that training changes: a parameter, or statistics.
  bool holds_weights(const Node* node) const {
    auto object = one_.at(node->input()).toObject();
    std::size_t slot = object->type()->getAttributeSlot(node->s(c10::attr::name));
    const c10::IValue& value = object->getSlot(slot);
    if (object->type()->is_parameter(slot) || !value.isTensor()) return true;
    return value.toTensor().is_floating_point() && value.toTensor().numel() > 1;
  }

  // Which axis has grown with the number of images.
  ImageAxis found_place(const Node* node, const Value* data, const c10::IValue& alone,
                        const c10::IValue& together) const {
    if (alone.isTensorList()) {
      if (alone.toTensorVector().empty()) throw NotFollowed{"a list of values is empty"};
      return found_place(node, data, alone.toTensorVector()[0], together.toTensorVector().at(0));
    }
    if (!alone.isTensor() || !together.isTensor()) throw NotFollowed{"what it does depends on the image"};
    c10::IntArrayRef one = alone.toTensor().sizes();
    c10::IntArrayRef two = together.toTensor().sizes();
    if (one.size() != two.size()) throw NotFollowed{"the number of axes depends on that of images"};
    std::optional<ImageAxis> place;
    for (std::size_t axis = 0; axis < one.size(); ++axis) {
      if (one[axis] == two[axis]) continue;
      if (place || two[axis] != 2 * one[axis]) throw NotFollowed{"images are put together"};
      place = ImageAxis{static_cast<std::int64_t>(axis), 1};
    }
    if (!place) throw NotFollowed{"images are put together"};
    const ImageAxis& before = place_.at(data);
    const c10::IValue& source = one_.at(data);
    if (source.isTensor() && keeps_order(node)) {
      std::int64_t ahead = product(one.slice(0, static_cast<std::size_t>(place->axis)));
      place->outer =
          std::max<std::int64_t>(1, in_front(source.toTensor().sizes(), before) / std::max<std::int64_t>(1, ahead));
    } else if (!source.isTensor() ||
               source.toTensor().size(before.axis) == one[static_cast<std::size_t>(place->axis)]) {
      place->outer = before.outer;
    }
    return *place;
  }

  // A list of sizes in which one is a multiple of the number of images.
  struct Sizes {
    Node* node;
    std::size_t input;
    std::vector<std::int64_t> alone;
    std::int64_t axis;
  };

  struct Folded {
    Node* node;
    std::size_t input;
    c10::IValue value;
  };

  std::vector<c10::IValue> follow_shape(Node* node, const Value* data, c10::IntArrayRef alone) {
    if (data != node->input(0) || batched(node->input(1))) throw NotFollowed{"a shape depends on the image"};
    c10::IntArrayRef source = one_.at(data).toTensor().sizes();
    const ImageAxis& before = place_.at(data);
    ImageAxis place =
        operator_name(node) == "expand"
            ? ImageAxis{before.axis + static_cast<std::int64_t>(alone.size() - source.size()), before.outer}
            : place_in_shape(alone, in_front(source, before));
    std::vector<std::int64_t> sizes = alone.vec();
    sizes[static_cast<std::size_t>(place.axis)] *= 2;
    std::vector<c10::IValue> inputs = inputs_of(node, true);
    inputs.at(1) = sizes;
    place_[node->output()] = place;
    sizes_.push_back({node, 1, alone.vec(), place.axis});
    return evaluate(node, inputs);
  }

  // A value that is the same for every image, such as a class token, is repeated where images are joined to it.
  std::vector<c10::IValue> follow_cat(Node* node) {
    Node* list = node->input(0)->node();
    if (list->kind() != c10::prim::ListConstruct) throw NotFollowed{"a list of values is joined"};
    const Value* data = nullptr;
    for (const Value* part : list->inputs()) {
      if (data == nullptr && batched(part)) data = part;
    }
    if (data == nullptr) throw NotFollowed{"a list of values is joined"};
    ImageAxis place = place_.at(data);
    std::vector<at::Tensor> parts = at_two(node->input(0)).toTensorVector();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (batched(list->input(i))) continue;
      std::vector<std::int64_t> sizes = parts[i].sizes().vec();
      if (place.axis >= parts[i].dim() || parts[i].size(place.axis) != 1 || node->input(0)->uses().size() != 1)
        throw NotFollowed{"images are joined with something else"};
      repeated_.push_back({list, i, sizes, place.axis});
      sizes[static_cast<std::size_t>(place.axis)] = 2;
      parts[i] = parts[i].expand(sizes);
    }
    std::vector<c10::IValue> inputs = inputs_of(node, true);
    std::int64_t dim = inputs.at(1).toInt();
    if ((dim < 0 ? dim + parts[0].dim() : dim) == place.axis)
      throw NotFollowed{"images are joined with something else"};
    inputs[0] = parts;
    place_[node->output()] = place;
    return evaluate(node, inputs);
  }

  Value* list_of(const Sizes& sizes, Node* where) {
    torch::jit::WithInsertPoint here(where);
    std::vector<Value*> parts;
    for (std::size_t i = 0; i < sizes.alone.size(); ++i) {
      Value* size = graph_->insertConstant(sizes.alone[i]);
      if (static_cast<std::int64_t>(i) == sizes.axis)
        size = sizes.alone[i] == 1 ? images_ : graph_->insert(c10::aten::mul, {images_, size});
      parts.push_back(size);
    }
    return graph_->insertNode(graph_->createList(c10::IntType::get(), parts))->output();
  }

  void write() {
    {
      torch::jit::WithInsertPoint first(*graph_->nodes().begin());
      images_ = graph_->insert(c10::aten::size, {graph_->inputs()[1], 0});
    }
    for (const Folded& folded : folded_) {
      torch::jit::WithInsertPoint here(folded.node);
      c10::IValue value = folded.value;
      // Passes with gradients keep what they multiply by, which must be an ordinary tensor.
      c10::InferenceMode ordinary(false);
      if (value.isTensor()) value = value.toTensor().clone();
      folded.node->replaceInput(folded.input, graph_->insertConstant(value));
    }
    for (const Sizes& sizes : sizes_) sizes.node->replaceInput(sizes.input, list_of(sizes, sizes.node));
    for (const Sizes& sizes : repeated_) {
      Value* list = list_of(sizes, sizes.node);
      torch::jit::WithInsertPoint here(sizes.node);
      sizes.node->replaceInput(sizes.input, graph_->insert(c10::aten::expand, {sizes.node->input(sizes.input), list}));
    }
    torch::jit::EliminateDeadCode(graph_);
  }

  std::shared_ptr<Graph> graph_;
  Values one_, two_;  // what values are for the first image, and for both; the latter where they differ
  std::unordered_map<const Value*, ImageAxis> place_;
  std::unordered_map<const Value*, std::int64_t> readers_;
  std::unordered_set<const Value*> constant_;  // computed from shapes and constants alone
  std::vector<Sizes> sizes_, repeated_;
  std::vector<Folded> folded_;
  Value* images_ = nullptr;
};

}  // namespace

std::shared_ptr<Graph> rebatch(const Graph& graph, const c10::IValue& self, const at::Tensor& two) {
  std::shared_ptr<Graph> copy = const_cast<Graph&>(graph).copy();
  TensorLimit limit(kMostBytes);
  try {
    Rebatcher(copy, self, two).run();
    return copy;
  } catch (const NotFollowed& reason) {
    log::debug("one image at a time: {}", reason.why);
  } catch (const std::exception& e) {
    check_step();
    log::debug("one image at a time: {}", first_line(e.what()));
  }
  return nullptr;
}

}  // namespace galvani
