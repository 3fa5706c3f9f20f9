#include "galvani/trace/trace.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

// A chunk's traces may take this much; at least one micro-batch is always run.
constexpr std::int64_t kChunkBytes = std::int64_t{128} << 20;
constexpr std::int64_t kMicroBatchesPerChunk = 32;

// The score of the class each input was predicted to be.
at::Tensor predicted_score(const Pass& pass) {
  return pass.logits.gather(1, pass.logits.detach().argmax(1, /*keepdim=*/true)).squeeze(1);
}

// How the mean over output positions of what a convolution's weights see is composed: for every place of the kernel,
// the mean of the input shifted there. [N, C, H, W] → [N, C, kernel height x width].
at::Tensor window_means(const at::Tensor& x, const LinearLayer& layer) {
  const auto& [stride, padding, dilation] = std::tie(layer.stride, layer.padding, layer.dilation);
  std::int64_t kernel[2] = {layer.weight.size(2), layer.weight.size(3)};
  at::Tensor padded = at::constant_pad_nd(x, {padding[1], padding[1], padding[0], padding[0]});
  std::int64_t span[2];
  for (int axis = 0; axis < 2; ++axis) {
    std::int64_t positions = (padded.size(axis + 2) - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis] + 1;
    span[axis] = (positions - 1) * stride[axis] + 1;
  }
  std::vector<at::Tensor> means;
  for (std::int64_t i = 0; i < kernel[0]; ++i) {
    at::Tensor rows = padded.slice(2, i * dilation[0], i * dilation[0] + span[0], stride[0]).mean(2);
    for (std::int64_t j = 0; j < kernel[1]; ++j)
      means.push_back(rows.slice(2, j * dilation[1], j * dilation[1] + span[1], stride[1]).mean(2));
  }
  return at::stack(means, 2);
}

LayerTrace layer_trace(const at::Tensor& x, const LinearLayer& layer) {
  if (!layer.dense) return {x.mean({2, 3}), window_means(x, layer)};
  at::Tensor features = x.dim() == 2 ? x : x.reshape({x.size(0), -1, x.size(-1)}).mean(1);
  return {features, features.unsqueeze(2)};
}

// Takes the mark from rows of [N, ...] float, or of nothing, that hold a value that is not finite.
void drop_infinite(const at::Tensor& values, std::vector<char>& usable) {
  if (!values.defined() || usable.empty()) return;
  at::Tensor all = values.contiguous();
  const auto* row = all.data_ptr<float>();
  auto width = all.numel() / static_cast<std::int64_t>(usable.size());
  for (char& mark : usable) {
    // A sum of products with zero is zero unless something is not finite; it vectorises, std::isfinite does not.
    float probe = 0;
    for (std::int64_t j = 0; j < width; ++j) probe += row[j] * 0.0F;
    if (probe != 0) mark = 0;
    row += width;
  }
}

}  // namespace

void TraceLayout::add(const std::string& tap, std::int64_t count) {
  blocks.push_back({tap, neurons, count});
  neurons += count;
}

const TraceBlock& TraceLayout::block(std::string_view tap) const {
  auto found = std::find_if(blocks.begin(), blocks.end(), [&](const TraceBlock& b) { return b.tap == tap; });
  if (found != blocks.end()) return *found;
  std::vector<std::string> names;
  for (const TraceBlock& block : blocks) names.push_back(block.tap);
  std::string near = nearest_word(tap, names);
  bad_usage("there is no tap '{}' among those observed{}", printable(tap),
            near.empty() ? "" : "; did you mean '" + near + "'?");
}

std::string TraceLayout::signature() const {
  std::string text = fmt::format("model {} classes {}", model, classes);
  for (const TraceBlock& block : blocks) text += fmt::format(" {}={}", block.tap, block.count);
  return text;
}

Traces make_traces(at::Tensor values, at::Tensor predicted, at::Tensor logits) {
  Traces traces;
  traces.values = values.to(at::kFloat).contiguous();
  traces.predicted = std::move(predicted);
  traces.logits = std::move(logits);
  mark_usable(traces);
  return traces;
}

void mark_usable(Traces& traces) {
  traces.usable.assign(static_cast<std::size_t>(traces.size()), 1);
  drop_infinite(traces.values, traces.usable);
  drop_infinite(traces.relevance, traces.usable);
  for (const LayerTrace& layer : traces.layers) {
    drop_infinite(layer.features, traces.usable);
    drop_infinite(layer.windows, traces.usable);
  }
  if (!traces.predicted.defined()) return;
  const auto* verdicts = traces.predicted.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < traces.usable.size(); ++i) {
    if (verdicts[i] == kNotANumber) traces.usable[i] = 0;
  }
}

Traces rows_of(const Traces& traces, const std::vector<std::int64_t>& rows) {
  at::Tensor index = at::tensor(rows, at::kLong);
  auto pick = [&](const at::Tensor& t) { return t.defined() ? t.index_select(0, index) : t; };
  Traces result;
  result.values = pick(traces.values);
  result.predicted = pick(traces.predicted);
  result.logits = pick(traces.logits);
  result.relevance = pick(traces.relevance);
  for (const LayerTrace& layer : traces.layers) result.layers.push_back({pick(layer.features), pick(layer.windows)});
  for (std::int64_t row : rows) result.usable.push_back(traces.usable[static_cast<std::size_t>(row)]);
  return result;
}

Tracer::Tracer(Network& network, std::vector<int> taps, NeuronUnit unit, TraceNeeds needs)
    : network_(network), version_(network.weights_version()), taps_(std::move(taps)), unit_(unit), needs_(needs) {
  layout_.classes = by_reference() ? 1 : network.info().classes;
  layout_.model = network.identity();
  for (int index : taps_) {
    const Tap& tap = network.taps().at(static_cast<std::size_t>(index));
    layout_.add(tap.name, unit == NeuronUnit::unit ? tap.units() : tap.neurons());
    layout_.layers.push_back(unit == NeuronUnit::channel ? network.linear_layer(index) : std::nullopt);
  }
  // A network without layers, such as a tree, is run, but has nothing to be observed.
  if (layout_.neurons == 0 && !network.taps().empty())
    bad_usage("no taps are chosen, so there are no neurons to look at");
}

bool Tracer::by_reference() const {
  return network_.info().question.by_reference();
}

Traces Tracer::trace(const at::Tensor& images) const {
  if (layout_.neurons == 0)
    bad_input("{}: has no layers whose neurons could be observed; the guide random and attacks need none",
              network_.info().path);
  if (network_.weights_version() != version_ && network_.identity() != layout_.model)
    bad_usage("{}: its weights changed after its neurons were laid out; what was learned before does not hold for it",
              network_.info().path);
  Request request;
  request.taps = taps_;
  request.form = unit_ == NeuronUnit::unit ? TapForm::full : TapForm::neurons;
  for (std::size_t i = 0; needs_.layers && i < taps_.size(); ++i) {
    if (layout_.layers[i]) request.layer_inputs.push_back(taps_[i]);
  }
  request.answers = by_reference();
  Outputs outputs = network_.run(images, request);
  const at::Tensor& said = request.answers ? outputs.answers : outputs.logits;
  std::int64_t n = images.size(0);
  std::vector<at::Tensor> columns;
  columns.reserve(outputs.taps.size());
  for (const at::Tensor& tap : outputs.taps) columns.push_back(tap.reshape({n, -1}));
  at::Tensor values = n > 0 ? at::cat(columns, 1) : at::empty({0, layout_.neurons});
  // Answers are of one class, unless they are no numbers.
  at::Tensor predicted = verdicts(said);
  if (request.answers) predicted.clamp_max_(0);
  Traces traces = make_traces(values, predicted, said);
  if (needs_.layers && n > 0) {
    traces.layers.resize(taps_.size());
    std::vector<std::pair<std::size_t, at::Tensor>> work;
    for (std::size_t i = 0; i < taps_.size(); ++i) {
      if (layout_.layers[i]) work.emplace_back(i, outputs.layer_inputs[work.size()]);
    }
    workers().run(static_cast<std::int64_t>(work.size()), [&](std::int64_t index, int) {
      const auto& [block, x] = work[static_cast<std::size_t>(index)];
      traces.layers[block] = layer_trace(x, *layout_.layers[block]);
    });
  }
  if (needs_.relevance && n > 0) traces.relevance = relevance(images);
  if (needs_.layers || needs_.relevance) mark_usable(traces);
  return traces;
}

// A pass of its own, so that values have the same bits whether relevance is asked for or not.
at::Tensor Tracer::relevance(const at::Tensor& images) const {
  Request request;
  request.answers = by_reference();
  request.objective = predicted_score;
  std::vector<at::Tensor> columns;
  if (unit_ == NeuronUnit::channel) {
    // The derivative by a factor on a channel, at 1, is the sum over space of gradient x activation.
    for (int tap : taps_)
      request.masks.push_back({tap, at::ones({network_.taps()[static_cast<std::size_t>(tap)].neurons()})});
    request.mask_gradients = true;
    columns = network_.run(images, request).mask_gradients;
  } else {
    request.taps = taps_;
    request.form = TapForm::full;
    request.tap_gradients = true;
    // Of a micro-batch only the product is kept.
    request.reducer = [](const Outputs& part, std::int64_t) {
      std::vector<at::Tensor> products;
      for (std::size_t i = 0; i < part.taps.size(); ++i)
        products.push_back((part.taps[i] * part.tap_gradients[i]).flatten(1));
      return products;
    };
    columns = network_.run(images, request).reduced;
  }
  return at::cat(columns, 1);
}

std::int64_t Tracer::chunk() const {
  std::int64_t bytes = std::max<std::int64_t>(1, layout_.neurons) * 8;
  for (int index : taps_) {
    std::int64_t units = network_.taps()[static_cast<std::size_t>(index)].units();
    if (needs_.layers) bytes += units * 12;
    if (unit_ == NeuronUnit::unit) bytes += units * (needs_.relevance ? 20 : 8);
  }
  std::int64_t micro = network_.execution().micro_batch;
  std::int64_t pieces = std::clamp<std::int64_t>(kChunkBytes / (bytes * micro), 1, kMicroBatchesPerChunk);
  return pieces * micro;
}

void Tracer::stream(const DataView& data, const std::string& title,
                    const std::function<void(const Traces& traces, std::int64_t first)>& sink) const {
  check_fits(network_, data.type().shape, data.name);
  Progress progress(title, data.size(), data.type().noun());
  data.for_each_piece(chunk(), [&](const at::Tensor& inputs, std::int64_t first) {
    sink(trace(inputs), first);
    progress.advance(inputs.size(0));
  });
}

}  // namespace galvani
