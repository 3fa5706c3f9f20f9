#include "semantics/probe.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/rng.h"
#include "galvani/model/evaluate.h"
#include "semantics/quantile.h"

namespace galvani {
namespace {

constexpr std::int64_t kMostPositions = std::int64_t{8} << 20;  // of all images together
constexpr std::int64_t kPiece = 64;                             // images in memory
constexpr std::int64_t kMapBytes = std::int64_t{64} << 20;      // of enlarged maps

DataView sample_of(const DataView& data, std::int64_t most, std::uint64_t seed) {
  if (most >= data.size()) return data;
  Rng rng = Rng(seed).derive("probe");
  std::vector<std::int64_t> rows = rng.sample(data.size(), most);
  std::sort(rows.begin(), rows.end());
  return data.subset(rows);
}

std::int64_t most_images(const DataView& data, const Grid& grid, std::int64_t wanted) {
  std::int64_t fit = grid.positions() > 0 ? std::max<std::int64_t>(1, kMostPositions / grid.positions()) : wanted;
  return std::min({wanted, fit, data.size()});
}

Grid grid_of(const DataView& data) {
  return data.type().kind == SampleKind::image ? Grid::of(data.type().shape[1], data.type().shape[2]) : Grid();
}

}  // namespace

NeuronProbe::NeuronProbe(Network& network, const DataView& data, std::int64_t images, std::uint64_t seed)
    : network_(network),
      data_(sample_of(data, most_images(data, grid_of(data), images), seed)),
      images_(data_.size()),
      pictures_(data.type().kind == SampleKind::image),
      grid_(grid_of(data)) {
  verdicts_ = !data_.labelled();
  const auto* known = data_.labels.data_ptr<std::int64_t>();
  labels_.assign(known, known + images_);
  if (verdicts_) {
    predict_stream(network, data_, "verdicts", [&](const Predictions& predictions, std::int64_t first) {
      const auto* seen = predictions.labels.data_ptr<std::int64_t>();
      std::copy(seen, seen + predictions.labels.size(0), labels_.begin() + first);
    });
  }
  for (std::int64_t label = 0; label < network.info().classes; ++label)
    class_names_.push_back(verdict_name(network, data, label));
  if (!pictures_) return;
  std::vector<ConceptTest> tests = concept_tests(data.type().shape[0] == 3);
  for (const ConceptTest& test : tests) concepts_.push_back(test.about);
  see(tests);
}

Cutoffs NeuronProbe::find_cutoffs() const {
  std::array<QuantileSketch, kStrengths> sketches;
  std::mutex mutex;
  data_.for_each_piece(kPiece, [&](const at::Tensor& images, std::int64_t) {
    workers().run(images.size(0), [&](std::int64_t i, int) {
      Strengths strengths = strengths_of(make_planes(images[i], grid_));
      // Counts are added up, so that their order does not matter.
      std::lock_guard<std::mutex> lock(mutex);
      for (std::size_t s = 0; s < kStrengths; ++s)
        sketches[s].add(strengths.values[s].data(), static_cast<std::int64_t>(strengths.values[s].size()));
    });
  });
  Cutoffs cutoffs{};
  for (std::size_t s = 0; s < kStrengths; ++s) {
    Cutoff cutoff = cutoff_of(static_cast<Strength>(s));
    cutoffs[s] = std::max(sketches[s].at(cutoff.quantile).value, static_cast<float>(cutoff.floor));
  }
  return cutoffs;
}

void NeuronProbe::see(const std::vector<ConceptTest>& tests) {
  auto positions = static_cast<std::size_t>(grid_.positions());
  maps_ = ConceptMaps(grid_, images_, tests.size());
  Cutoffs cutoffs = find_cutoffs();
  Progress progress("concepts", images_, "images");
  data_.for_each_piece(kPiece, [&](const at::Tensor& images, std::int64_t first) {
    workers().run(images.size(0), [&](std::int64_t i, int) {
      Planes planes = make_planes(images[i], grid_);
      Strengths strengths = strengths_of(planes);
      for (std::size_t which = 0; which < tests.size(); ++which) {
        Present present = tests[which].on(planes, strengths, cutoffs);
        std::uint64_t* bits = maps_.bits(first + i, which);
        for (std::size_t p = 0; p < positions; ++p) {
          if (present(p)) ConceptMaps::set(bits, p);
        }
      }
    });
    progress.advance(images.size(0));
  });
  maps_.count();
}

// A map that is as fine as the grid, or nearly, is looked at on the grid.
Grid NeuronProbe::grid_for(const ExemplarLayer& layer) const {
  bool coarse = layer.height * 3 <= grid_.height * 2 && layer.width * 3 <= grid_.width * 2;
  return coarse ? Grid{layer.height, layer.width} : grid_;
}

const ConceptMaps& NeuronProbe::maps(const ExemplarLayer& layer) {
  Grid grid = grid_for(layer);
  if (grid.height == grid_.height && grid.width == grid_.width) return maps_;
  auto [place, is_new] = pooled_.try_emplace({grid.height, grid.width});
  if (is_new) place->second = maps_.pooled(grid);
  return place->second;
}

std::vector<NeuronActivity> NeuronProbe::activity(int tap_index, const ExemplarLayer& layer) const {
  const Tap& tap = network_.taps()[static_cast<std::size_t>(tap_index)];
  std::vector<NeuronActivity> result(static_cast<std::size_t>(layer.neurons));
  bool mapped = pictures_ && layer.spatial() && layer.height > 1;
  for (NeuronActivity& neuron : result) {
    neuron.peaks.reserve(static_cast<std::size_t>(images_));
    if (mapped) neuron.first.push_back(0);
  }
  Grid grid = grid_for(layer);
  Request request;
  request.taps = {tap_index};
  request.form = TapForm::full;
  std::int64_t micro = network_.execution().micro_batch;
  std::int64_t bytes = std::max(tap.units(), mapped ? layer.neurons * grid.positions() : 0) * 4;
  std::int64_t piece = std::max<std::int64_t>(1, kMapBytes / (bytes * micro)) * micro;
  data_.for_each_piece(piece, [&](const at::Tensor& images, std::int64_t) {
    at::Tensor maps = by_neuron(network_.run(images, request).taps[0], tap);
    std::int64_t n = maps.size(0);
    workers().run(layer.neurons, [&](std::int64_t index, int) {
      NeuronActivity& neuron = result[static_cast<std::size_t>(index)];
      at::Tensor own = maps.select(1, index).contiguous();
      const auto* values = own.data_ptr<float>();
      for (std::int64_t i = 0; i < n; ++i) {
        float peak = *std::max_element(values + i * own.size(1), values + (i + 1) * own.size(1));
        neuron.peaks.push_back(std::isfinite(peak) ? peak : std::numeric_limits<float>::lowest());
      }
      if (!mapped) return;
      at::Tensor large = own.view({n, 1, layer.height, layer.width});
      if (layer.height != grid.height || layer.width != grid.width)
        large = at::upsample_bilinear2d(large, {grid.height, grid.width}, false);
      large = large.contiguous();
      float threshold = layer.threshold[static_cast<std::size_t>(index)];
      for (std::int64_t i = 0; i < n; ++i) {
        const float* map = large.data_ptr<float>() + i * grid.positions();
        for (std::int64_t p = 0; p < grid.positions(); ++p) {
          if (map[p] > threshold) neuron.positions.push_back(static_cast<std::uint16_t>(p));
        }
        neuron.first.push_back(static_cast<std::uint32_t>(neuron.positions.size()));
      }
    });
  });
  return result;
}

}  // namespace galvani
