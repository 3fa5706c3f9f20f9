// Learning what a network takes and gives: the input that its file leaves open, its classes, its taps, whether batches
// are free.
#include <fmt/format.h>
#include <torch/script.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "galvani/base/text.h"
#include "model/limits.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

// Image sizes that models are commonly made for, tried on a TorchScript file that does not state its own.
const std::vector<std::int64_t> kCommonSides = {224, 32, 28, 299, 64, 96};

// A second of speech, as it is commonly sampled.
constexpr std::int64_t kCommonLength = 16000;

// Larger images than any camera's are a mistake in the file.
void check_input_size(const std::vector<std::int64_t>& shape, std::int64_t batch, const std::string& label) {
  // A sound may be long.
  const std::int64_t kLongestSide = shape.size() == 3 ? 65536 : kMostInputValues;
  std::int64_t values = 1;
  for (std::int64_t n : shape) {
    if (n < 1 || n > kLongestSide || (values *= n) > kMostInputValues)
      bad_input("{}: its input of {} is too large", label, fmt::format("{}", fmt::join(shape, "x")));
  }
  std::int64_t most = std::min(kLargestBatch, kMostInputValues / values);
  if (batch > most)
    bad_input(
        "{}: takes batches of {} only, more than the {} supported for its input; export it with an open batch size",
        label, batch, most);
}

using Shape = std::vector<std::int64_t>;

// What an input may be, and what the graph takes of it (NetworkInfo::graph_input).
struct Reading {
  Shape input;
  Shape graph;
};

bool complete(const Shape& shape) {
  return !shape.empty() && *std::min_element(shape.begin(), shape.end()) > 0;
}

std::int64_t values_of(const Shape& shape) {
  std::int64_t values = 1;
  for (std::int64_t n : shape) {
    if (__builtin_mul_overflow(values, n, &values)) return 0;
  }
  return values;
}

// What graphs without convolutions take in place of an image.
std::vector<Shape> other_forms(const Shape& image) {
  std::vector<Shape> forms = {{values_of(image)}};
  if (image[0] == 1) forms.push_back({image[1], image[2]});
  return forms;
}

// The image of the data's size whose values a graph takes as `graph`: in colour or gray, as their number says.
std::optional<Shape> image_of(const Shape& graph, const Shape& data) {
  if (data.size() != 3 || graph.size() > 2 || !complete(graph)) return std::nullopt;
  for (std::int64_t channels : {data[0], std::int64_t{1}, std::int64_t{3}}) {
    Shape image = {channels, data[1], data[2]};
    for (const Shape& form : other_forms(image)) {
      if (form == graph) return image;
    }
  }
  return std::nullopt;
}

std::vector<Reading> candidate_inputs(const Network::Impl& impl, const Shape& data) {
  const Shape& said = impl.card.input;
  Shape stated = impl.info.input;
  if (said.size() == 1 || (stated.empty() && said.size() == 2)) stated = said;
  if (said.size() < 3) {
    if (std::optional<Shape> image = image_of(stated, data)) return {{*image, stated}};
  }
  if (said.size() > 1) {
    if (said.size() == stated.size()) return {{said, {}}};
    if (stated.size() == 1) return {{said, {values_of(said)}}};
    if (stated.size() == 2 && said[0] == 1) return {{said, {said[1], said[2]}}};
    std::vector<Reading> result = {{said, {}}};
    if (!stated.empty()) return result;
    for (const Shape& form : other_forms(said)) result.push_back({said, form});
    return result;
  }
  if (stated.size() == 1) {
    bool sound = data.size() == 2 && data[0] == 1;
    std::int64_t length = stated[0] > 0 ? stated[0] : sound ? data[1] : kCommonLength;
    return {{{1, length}, {length}}};
  }
  // The channels come first everywhere but in the model.
  if (complete(stated) && impl.card.preprocess.channels_last)
    std::rotate(stated.begin(), stated.end() - 1, stated.end());
  if (complete(stated)) return {{stated, {}}};
  // Images of any size are cut to this one.
  if (std::int64_t side = impl.card.intake.crop; side > 0 && stated.size() != 2)
    return {{{data.size() == 3 ? data[0] : 3, side, side}, {}}, {{3, side, side}, {}}, {{1, side, side}, {}}};
  std::vector<Reading> result;
  if (!data.empty() && (stated.empty() || data.size() == stated.size())) result.push_back({data, {}});
  if (stated.size() == 2)
    result.push_back({{stated[0] > 0 ? stated[0] : 1, stated[1] > 0 ? stated[1] : kCommonLength}, {}});
  if (stated.size() == 2) return result;
  if (stated.empty() && data.size() == 3) {
    for (const Shape& form : other_forms(data)) result.push_back({data, form});
  }
  for (std::int64_t channels : {3, 1}) {
    for (std::int64_t side : kCommonSides) result.push_back({{channels, side, side}, {}});
  }
  return result;
}

// Whether the rows of `together` are what single images gave.
bool same_rows(const at::Tensor& together, const std::vector<at::Tensor>& alone, double tolerance) {
  auto n = static_cast<std::int64_t>(alone.size());
  if (together.dim() != alone[0].dim() || together.dim() == 0 || together.size(0) != n * alone[0].size(0)) return false;
  at::Tensor wanted = at::cat(alone);
  if (wanted.sizes() != together.sizes() || wanted.numel() == 0) return false;
  double largest = wanted.is_floating_point() ? wanted.abs().max().item<double>() : 0;
  return at::allclose(together, wanted, 0, tolerance * largest, /*equal_nan=*/true);
}

}  // namespace

void Network::Impl::tell_reading() const {
  if (info.input.size() != 3 || info.graph_input.empty()) return;
  bool rows = info.input[0] == 1;
  std::string order = card.preprocess.bgr ? "blue, green, red" : "red, green, blue";
  if (info.input[0] != 3) order = fmt::format("{} channels", info.input[0]);
  log::info("{}: its input of {}{} is read as images of {}, {}", info.path, fmt::join(info.graph_input, "x"),
            info.graph_input.size() == 1 ? " values" : "", fmt::join(info.input, "x"),
            rows ? "row by row"
            : card.preprocess.channels_last
                ? fmt::format("pixel by pixel ({})", order)
                : fmt::format("channel by channel ({}; --layout nhwc: pixel by pixel)", order));
}

void Network::read_as_images(const std::vector<std::int64_t>& shape) {
  Impl& impl = *impl_;
  if (impl.info.input.size() != 2) return;
  Shape graph = impl.info.graph_input.empty() ? impl.info.input : impl.info.graph_input;
  std::optional<Shape> image = image_of(graph, shape);
  if (!image) return;
  check(impl.card.preprocess, image->at(0), impl.info.path);
  impl.info.input = *image;
  impl.info.graph_input = graph;
  impl.tell_reading();
}

bool Network::Impl::same_outputs(Executor& free, const at::Tensor& input, double tolerance) const {
  std::vector<std::vector<at::Tensor>> alone(kept_outputs.size());
  for (std::int64_t i = 0; i < input.size(0); ++i) {
    std::vector<at::Tensor> values = executor->output_plan(/*random=*/false)->run(input.narrow(0, i, 1), {});
    for (std::size_t v = 0; v < kept_outputs.size(); ++v) alone[v].push_back(values[kept_outputs[v]]);
  }
  std::vector<at::Tensor> together = free.output_plan(/*random=*/false)->run(input, {});
  for (std::size_t v = 0; v < kept_outputs.size(); ++v) {
    if (!same_rows(together[kept_outputs[v]], alone[v], tolerance)) return false;
  }
  return true;
}

bool Network::Impl::free_batch() {
  constexpr std::int64_t kImages = 3;
  constexpr double kTolerance = 1e-5;  // of the largest value
  std::vector<at::Tensor> images;
  for (std::int64_t i = 0; i < kImages; ++i) images.push_back(probe_images(1, info.input) * (2 * i + 1) + 31 * i);
  at::Tensor input = prepare(at::cat(images).to(at::kByte), {});
  std::unique_ptr<Executor> free = executor->rebatched(input.narrow(0, 0, 2));
  if (free == nullptr || free->taps().size() != executor->taps().size()) return false;
  std::vector<int> every;
  for (std::size_t i = 0; i < free->taps().size(); ++i) {
    if (free->taps()[i].name != executor->taps()[i].name) return false;
    every.push_back(static_cast<int>(i));
  }
  auto plan_of = [&](Executor& of) { return of.plan({every, {}, Executor::Form::whole, {}, false}); };
  std::vector<std::vector<at::Tensor>> alone(every.size() + 1);
  for (std::int64_t i = 0; i < kImages; ++i) {
    std::vector<at::Tensor> values = plan_of(*executor)->run(input.narrow(0, i, 1), {});
    for (std::size_t v = 0; v < values.size(); ++v) alone[v].push_back(std::move(values[v]));
  }
  try {
    std::vector<at::Tensor> together = plan_of(*free)->run(input, {});
    for (std::size_t v = 0; v < together.size(); ++v) {
      bool observable = v == 0 || (alone[v][0].dim() >= 2 && alone[v][0].size(0) == 1);
      if (observable && !same_rows(together[v], alone[v], kTolerance)) return false;
    }
    if (any_output && !same_outputs(*free, input, kTolerance)) return false;
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
  log::debug("{}: was made for single images; takes any number", info.path);
  executor = std::move(free);
  return true;
}

void Network::Impl::probe(const std::vector<std::int64_t>& data_shape) {
  std::vector<int> every;
  for (std::size_t i = 0; i < executor->taps().size(); ++i) every.push_back(static_cast<int>(i));
  std::shared_ptr<const Plan> plan = executor->plan({every, {}, Executor::Form::whole, {}, false});
  std::vector<Reading> candidates = candidate_inputs(*this, data_shape);
  std::string first_error;
  std::vector<at::Tensor> values;
  at::Tensor judged;        // by what a single image gives and what it gives among others: are batches free?
  bool by_outputs = false;  // of a graph without class scores
  c10::InferenceMode inference;
  at::Tensor noise;
  std::int64_t batch = info.fixed_batch > 0 ? info.fixed_batch : 2;
  auto attempt = [&](const std::vector<std::int64_t>& shape, std::int64_t size) {
    try {
      check_input_size(shape, size, info.path);
      check(card.preprocess, shape[0], info.path);
      noise = probe_images(size, shape);
      values = plan->run(prepare(noise, {}), {});
      judged = values[0];
      if (by_outputs) judged = executor->output_plan(/*random=*/false)->run(prepare(noise, {}), {})[kept_outputs[0]];
      return true;
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      if (first_error.empty()) first_error = executor->explain(e);
      return false;
    }
  };
  std::vector<std::int64_t> found;
  for (const auto& [input, graph] : candidates) {
    info.graph_input = graph;
    if (attempt(input, batch) || (info.fixed_batch == 0 && attempt(input, 1))) {
      found = input;
      break;
    }
  }
  if (found.empty())
    bad_input(
        "{}: cannot be run on {} of {}: {}{}", info.path, candidates[0].input.size() == 3 ? "an image" : "a sound",
        fmt::format("{}", fmt::join(candidates[0].input, "x")), first_error,
        card.input.empty() && candidates.size() > 1 ? "; --input says what it takes, such as 1,28,28 or 784" : "");
  std::vector<std::int64_t> stated = std::exchange(info.input, found);
  if (!head_settled && settle_head(prepare(noise, {}), values[0])) {
    info.input = stated;
    return probe(data_shape);
  }
  if (card.input.empty() && candidates.size() > 1 && found != data_shape)
    info.notes.push_back(fmt::format("does not state its input; {} works (--input says otherwise)",
                                     fmt::format("{}", fmt::join(found, "x"))));
  batch = noise.size(0);
  if (!task_settled && settle_task(values, batch)) {
    info.input = stated;
    return probe(data_shape);
  }
  at::Tensor logits = values[0];
  bool scores = info.classes > 0;
  if (any_output) describe_outputs(noise, scores ? logits : at::Tensor());
  if (!scores) {
    by_outputs = true;
    attempt(found, batch);
  }
  // Names of labels, or of numbers, where verdicts are no classes.
  std::int64_t nameable = info.question.by_reference() ? info.question.outputs : info.classes;
  if (scores && !card.class_names.empty() && static_cast<std::int64_t>(card.class_names.size()) != nameable)
    bad_input("{}: names {} but has {}", info.path,
              counted(static_cast<std::int64_t>(card.class_names.size()), "class", "classes"),
              counted(nameable, "output"));

  // A file that states a batch size, or one that only took a single image, may still take any: try.
  std::vector<at::Tensor> first_values = values;
  at::Tensor first_judged = judged;
  std::int64_t other = batch == 1 ? 2 : 1;
  bool any_batch = false;
  if (attempt(found, other) && judged.dim() == first_judged.dim() && judged.size(0) == other) {
    at::Tensor among = (other == 1 ? first_judged : judged).narrow(0, 0, 1);
    at::Tensor alone = other == 1 ? judged : first_judged;
    any_batch = at::allclose(alone, among, 1e-3, 1e-4, /*equal_nan=*/true);
  }
  if (!any_batch && batch == 1) any_batch = free_batch();
  info.fixed_batch = any_batch ? 0 : batch;
  std::int64_t asked = std::max(execution.micro_batch, wanted_micro_batch);
  if (!any_batch && asked != 0 && asked != batch) bad_usage("{}: takes batches of {} only", info.path, batch);

  std::vector<std::size_t> observable;
  for (std::size_t i = 0; i < executor->taps().size(); ++i) {
    at::IntArrayRef sizes = first_values[i + 1].sizes();
    // A product of weights alone has no value per image: nothing to observe.
    if (sizes.size() < 2 || sizes[0] != batch) continue;
    Tap tap = executor->taps()[i];
    tap.shape = sizes.slice(1).vec();
    auto rank = static_cast<std::int64_t>(tap.shape.size());
    if (tap.axis == Executor::kUnknownAxis) tap.axis = rank == 3 ? 0 : -1;
    if (tap.axis < 0 || tap.axis >= rank) tap.axis = rank - 1;
    if (rank == 1) tap.axis = 0;
    taps.push_back(std::move(tap));
    observable.push_back(i);
  }
  executor->keep_taps(observable, taps);
}

}  // namespace galvani
