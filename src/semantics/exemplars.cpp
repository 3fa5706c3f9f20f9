#include "galvani/semantics/exemplars.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "galvani/attribute/conductance.h"
#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "semantics/quantile.h"

namespace galvani {
namespace {

// A chunk's maps may take this much; at least one micro-batch is always run.
constexpr std::int64_t kChunkBytes = std::int64_t{128} << 20;
constexpr std::int64_t kMicroBatchesPerChunk = 16;

struct Best {
  float peak;
  std::int64_t row;
  std::vector<float> map;
};

// A sum of products with zero is zero unless something is not finite; it vectorises, std::isfinite does not.
bool finite(const float* values, std::int64_t n) {
  float probe = 0;
  for (std::int64_t i = 0; i < n; ++i) probe += values[i] * 0.0F;
  return probe == 0;
}

// What is known of one neuron so far. Maps with a value that is not finite do not count.
class NeuronWatch {
 public:
  // values [n, positions] of this neuron, `stride` apart; rows in ascending order over all calls.
  void look(const float* values, std::int64_t n, std::int64_t positions, std::int64_t stride,
            const std::vector<std::int64_t>& rows, std::size_t count) {
    for (std::int64_t i = 0; i < n; ++i) {
      const float* map = values + i * stride;
      if (!finite(map, positions)) continue;
      sketch_.add(map, positions);
      float peak = *std::max_element(map, map + positions);
      // Later rows of equal peak come after earlier ones.
      if (best_.size() == count && peak <= best_.back().peak) continue;
      auto place =
          std::upper_bound(best_.begin(), best_.end(), peak, [](float p, const Best& b) { return p > b.peak; });
      best_.insert(place, {peak, rows[static_cast<std::size_t>(i)], std::vector<float>(map, map + positions)});
      if (best_.size() > count) best_.pop_back();
    }
  }
  const QuantileSketch& sketch() const { return sketch_; }
  const std::vector<Best>& best() const { return best_; }

 private:
  QuantileSketch sketch_;
  std::vector<Best> best_;  // by peak, then by row
};

ExemplarLayer finished(const Tap& tap, const std::vector<NeuronWatch>& watches, const ExemplarOptions& options) {
  ExemplarLayer layer;
  layer.tap = tap.name;
  layer.kind = tap.kind;
  layer.neurons = tap.neurons();
  std::tie(layer.height, layer.width) = map_size(tap);
  std::int64_t positions = layer.height * layer.width;
  at::Tensor maps = at::zeros({layer.neurons, options.count, positions});
  for (std::int64_t neuron = 0; neuron < layer.neurons; ++neuron) {
    const NeuronWatch& watch = watches[static_cast<std::size_t>(neuron)];
    Quantile threshold = watch.sketch().size() > 0 ? watch.sketch().at(options.quantile) : Quantile();
    layer.threshold.push_back(threshold.value);
    layer.above.push_back(threshold.above);
    layer.least.push_back(watch.sketch().least());
    layer.largest.push_back(watch.sketch().largest());
    for (std::size_t place = 0; place < static_cast<std::size_t>(options.count); ++place) {
      bool there = place < watch.best().size();
      layer.rows.push_back(there ? watch.best()[place].row : -1);
      layer.peaks.push_back(there ? watch.best()[place].peak : 0);
      if (!there) continue;
      float* out = maps.data_ptr<float>() + (neuron * options.count + static_cast<std::int64_t>(place)) * positions;
      std::copy(watch.best()[place].map.begin(), watch.best()[place].map.end(), out);
    }
  }
  // Half of the bytes; values beyond its range are as large as it can say.
  constexpr double kLargest = 65504;
  layer.maps =
      maps.clamp_(-kLargest, kLargest).to(at::kHalf).view({layer.neurons, options.count, layer.height, layer.width});
  return layer;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> map_size(const Tap& tap) {
  std::vector<std::int64_t> sides;
  for (std::size_t i = 0; i < tap.shape.size(); ++i) {
    if (static_cast<std::int64_t>(i) != tap.axis) sides.push_back(tap.shape[i]);
  }
  if (sides.size() == 2) return {sides[0], sides[1]};
  return {1, tap.units() / tap.neurons()};
}

at::Tensor by_neuron(const at::Tensor& values, const Tap& tap) {
  at::Tensor first = values.movedim(tap.axis + 1, 1);
  return first.reshape({first.size(0), first.size(1), -1}).contiguous();
}

std::vector<int> choose_layers(const Network& network, const std::string& layers) {
  bool number = !layers.empty() && layers.size() < 6 &&
                std::all_of(layers.begin(), layers.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) return network.select_taps(layers);
  std::int64_t count = std::stoll(layers);
  if (count < 1) bad_usage("at least one layer must be chosen");
  std::vector<int> convolutions, others;
  for (int tap : network.select_taps("default")) {
    bool convolution = network.taps()[static_cast<std::size_t>(tap)].kind == TapKind::convolution;
    (convolution ? convolutions : others).push_back(tap);
  }
  if (!convolutions.empty()) return evenly_chosen(convolutions, count);
  if (others.size() > 1) others.pop_back();
  return evenly_chosen(others, count);
}

Exemplars find_exemplars(Network& network, const std::vector<int>& taps, const DataView& data,
                         const ExemplarOptions& options) {
  if (data.size() == 0) bad_input("{}: there are no inputs to look at", data.name);
  if (taps.empty()) bad_usage("no layer is chosen, so there are no neurons to look at");
  check_fits(network, data.type().shape, data.name);
  Exemplars result;
  result.model = network.identity();
  result.data = data.name;
  result.type = data.type();
  result.options = options;
  std::vector<const Tap*> layers;
  std::vector<std::vector<NeuronWatch>> watches;
  std::int64_t bytes = 0;
  for (int index : taps) {
    layers.push_back(&network.taps()[static_cast<std::size_t>(index)]);
    watches.emplace_back(static_cast<std::size_t>(layers.back()->neurons()));
    bytes += layers.back()->units() * 8;
  }
  Request request;
  request.taps = taps;
  request.form = TapForm::full;
  std::int64_t micro = network.execution().micro_batch;
  std::int64_t chunk = std::clamp<std::int64_t>(kChunkBytes / (bytes * micro), 1, kMicroBatchesPerChunk) * micro;
  Progress progress("exemplars", data.size(), data.type().noun());
  data.for_each_piece(chunk, [&](const at::Tensor& inputs, std::int64_t first) {
    Outputs outputs = network.run(inputs, request);
    std::int64_t n = inputs.size(0);
    result.inputs += n;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
    std::iota(rows.begin(), rows.end(), first);
    std::vector<char> whole(rows.size(), 1);
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      at::Tensor maps = by_neuron(outputs.taps[layer], *layers[layer]);
      std::int64_t positions = maps.size(2);
      std::int64_t stride = maps.size(1) * positions;
      workers().run(maps.size(1), [&](std::int64_t neuron, int) {
        watches[layer][static_cast<std::size_t>(neuron)].look(maps.data_ptr<float>() + neuron * positions, n, positions,
                                                              stride, rows, static_cast<std::size_t>(options.count));
      });
      for (std::int64_t i = 0; i < n; ++i) {
        if (!finite(maps.data_ptr<float>() + i * stride, stride)) whole[static_cast<std::size_t>(i)] = 0;
      }
    }
    result.hurt += std::count(whole.begin(), whole.end(), 0);
    progress.advance(n);
  });
  progress.finish();
  if (result.hurt > 0) log::warn("{} inputs have values that are not finite; those were left out", result.hurt);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    result.layers.push_back(finished(*layers[layer], watches[layer], options));
    const std::vector<std::int64_t>& rows = result.layers.back().rows;
    result.pictured.insert(result.pictured.end(), rows.begin(), rows.end());
  }
  std::sort(result.pictured.begin(), result.pictured.end());
  result.pictured.erase(std::unique(result.pictured.begin(), result.pictured.end()), result.pictured.end());
  if (result.pictured.front() == -1) result.pictured.erase(result.pictured.begin());
  result.images =
      result.pictured.empty() ? at::empty(data.type().batch(0), data.type().dtype()) : data.fetch(result.pictured);
  return result;
}

at::Tensor Exemplars::image(std::int64_t row) const {
  auto found = std::lower_bound(pictured.begin(), pictured.end(), row);
  if (found == pictured.end() || *found != row) fail(ErrorCode::internal, "input {} is no exemplar", row);
  return images[found - pictured.begin()];
}

at::Tensor Exemplars::mask(std::size_t layer, std::int64_t neuron, std::int64_t place) const {
  const ExemplarLayer& from = layers[layer];
  at::Tensor map = from.maps[neuron][place].to(at::kFloat).view({1, 1, from.height, from.width});
  at::Tensor large = at::upsample_bilinear2d(map, {type.shape[1], type.shape[2]}, false);
  return large[0][0] > from.threshold[static_cast<std::size_t>(neuron)];
}

}  // namespace galvani
