// Causality-aware coverage (Ji et al. 2023): edges between neurons of neighbouring layers that are shown to matter.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "coverage/builtin.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

constexpr const char* kLayerMoments = "layers";
constexpr std::size_t kMostSplits = 64;
constexpr double kLeastExpected = 5;

// How values of some neurons are spread: quantiles at 0/64, 1/64, ..., 64/64, from a thinned sample; the ends are
// exact.
class Spread {
 public:
  explicit Spread(std::int64_t width = 0)
      : low_(static_cast<std::size_t>(width), std::numeric_limits<float>::max()),
        high_(static_cast<std::size_t>(width), std::numeric_limits<float>::lowest()) {}

  void learn(const float* row) {
    for (std::size_t j = 0; j < low_.size(); ++j) {
      low_[j] = std::min(low_[j], row[j]);
      high_[j] = std::max(high_[j], row[j]);
    }
    if (seen_++ % stride_ != 0) return;
    sample_.insert(sample_.end(), row, row + low_.size());
    if (sample_.size() < low_.size() * 2 * kSample) return;
    // Every second row goes, and from now on every second one comes.
    for (std::size_t i = 1; i < kSample; ++i)
      std::copy_n(sample_.begin() + static_cast<std::ptrdiff_t>(2 * i * low_.size()), low_.size(),
                  sample_.begin() + static_cast<std::ptrdiff_t>(i * low_.size()));
    sample_.resize(low_.size() * kSample);
    stride_ *= 2;
  }

  void finish() {
    std::size_t width = low_.size();
    grid_.assign(width * kGrid, 0);
    std::size_t n = width > 0 ? sample_.size() / width : 0;
    std::vector<float> column(n);
    for (std::size_t j = 0; j < width && n > 0; ++j) {
      for (std::size_t i = 0; i < n; ++i) column[i] = sample_[i * width + j];
      std::sort(column.begin(), column.end());
      for (std::size_t g = 0; g < kGrid; ++g) grid_[j * kGrid + g] = column[(n - 1) * g / (kGrid - 1)];
      grid_[j * kGrid] = low_[j];
      grid_[(j + 1) * kGrid - 1] = high_[j];
    }
    sample_.clear();
  }

  void save(ArchiveWriter& out) const { out.put(grid_); }
  void load(ArchiveReader& in) {
    grid_ = in.get_vector<float>(low_.size() * kGrid);
    for (std::size_t j = 0; j < low_.size(); ++j) {
      auto first = grid_.begin() + static_cast<std::ptrdiff_t>(j * kGrid);
      if (!std::is_sorted(first, first + kGrid) || !std::isfinite(*first) || !std::isfinite(first[kGrid - 1]))
        in.broken("holds quantiles that are none");
    }
  }

  // Where the sections of each neuron begin, but for the first: [width, sections - 1].
  std::vector<float> boundaries(std::int64_t sections, bool quantiles) const {
    std::vector<float> result;
    for (std::size_t j = 0; j < low_.size(); ++j) {
      const float* grid = grid_.data() + j * kGrid;
      for (std::int64_t s = 1; s < sections; ++s) {
        double share = static_cast<double>(s) / static_cast<double>(sections);
        double at = share * (kGrid - 1);
        auto below = static_cast<std::size_t>(at);
        double between = grid[below] + (at - static_cast<double>(below)) * (grid[below + 1] - grid[below]);
        double even = grid[0] + share * (static_cast<double>(grid[kGrid - 1]) - grid[0]);
        result.push_back(static_cast<float>(quantiles ? between : even));
      }
    }
    return result;
  }

 private:
  static constexpr std::size_t kSample = 1024;  // rows at least, once there are that many
  static constexpr std::size_t kGrid = 65;

  std::vector<float> low_, high_;
  std::vector<float> sample_;  // rows
  std::int64_t seen_ = 0;
  std::int64_t stride_ = 1;
  std::vector<float> grid_;  // [width, kGrid]
};

// Of every layer on training data: how its input's features vary together, and how they and its neurons are spread.
class LayerMoments : public ProfilePart {
 public:
  struct Moments {
    bool known = false;   // the layer is one we can recompute
    Spread features;      // of its input
    Spread neurons;       // of its output
    at::Tensor sum;       // [features] double
    at::Tensor products;  // [features, features] double: sums of products; the covariance after finish
  };

  explicit LayerMoments(const TraceLayout& layout) : layout_(layout) {
    for (std::size_t b = 0; b < layout.layers.size(); ++b) {
      Moments moments;
      if (layout.layers[b]) {
        std::int64_t width = layout.layers[b]->features();
        moments = {true, Spread(width), Spread(layout.blocks[b].count), at::zeros({width}, at::kDouble),
                   at::zeros({width, width}, at::kDouble)};
      }
      layers_.push_back(std::move(moments));
    }
  }

  TraceNeeds needs() const override { return {false, true}; }

  void learn(const Traces& traces) override {
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < traces.usable.size(); ++i) {
      if (traces.usable[i]) rows.push_back(static_cast<std::int64_t>(i));
    }
    if (rows.empty()) return;
    count_ += static_cast<double>(rows.size());
    at::Tensor chosen = at::tensor(rows, at::kLong);
    workers().run(static_cast<std::int64_t>(layers_.size()), [&](std::int64_t index, int) {
      auto b = static_cast<std::size_t>(index);
      Moments& layer = layers_[b];
      if (!layer.known) return;
      at::Tensor x = traces.layers[b].features.index_select(0, chosen);
      for (std::int64_t i = 0; i < x.size(0); ++i) {
        layer.features.learn(x.data_ptr<float>() + i * x.size(1));
        layer.neurons.learn(traces.row(rows[static_cast<std::size_t>(i)]) + layout_.blocks[b].first);
      }
      at::Tensor exact = x.to(at::kDouble);
      layer.sum += exact.sum(0);
      layer.products += at::mm(exact.t(), exact);
    });
  }

  void finish() override {
    for (Moments& layer : layers_) {
      if (!layer.known || count_ == 0) continue;
      at::Tensor mean = layer.sum / count_;
      layer.products = layer.products / count_ - at::outer(mean, mean);
      layer.features.finish();
      layer.neurons.finish();
    }
  }

  std::string summary() const override {
    return fmt::format("spreads and covariances of {} layers",
                       std::count_if(layers_.begin(), layers_.end(), [](const Moments& m) { return m.known; }));
  }

  void save(ArchiveWriter& out) const override {
    for (const Moments& layer : layers_) {
      if (!layer.known) continue;
      layer.features.save(out);
      layer.neurons.save(out);
      at::Tensor whole = layer.products.contiguous();
      out.put(std::vector<double>(whole.data_ptr<double>(), whole.data_ptr<double>() + whole.numel()));
    }
  }

  void load(ArchiveReader& in) override {
    for (Moments& layer : layers_) {
      if (!layer.known) continue;
      layer.features.load(in);
      layer.neurons.load(in);
      auto values = in.get_vector<double>(static_cast<std::uint64_t>(layer.products.numel()));
      layer.products = at::tensor(values, at::kDouble).view(layer.products.sizes());
      if (!layer.products.isfinite().all().item<bool>()) in.broken("holds covariances that are not finite");
    }
  }

  const std::vector<Moments>& layers() const { return layers_; }

 private:
  TraceLayout layout_;
  double count_ = 0;
  std::vector<Moments> layers_;  // one per block
};

// x with P(chi² with `degrees` of freedom > x) = p.
double critical_value(double degrees, double p) {
  double low = 0;
  double high = degrees * 10 + 100;
  for (int step = 0; step < 200; ++step) {
    double middle = (low + high) / 2;
    auto above = at::special_gammaincc(at::tensor({degrees / 2}, at::kDouble), at::tensor({middle / 2}, at::kDouble))
                     .item<double>();
    (above > p ? low : high) = middle;
  }
  return high;
}

// The edges of one layer that are looked at, and what is known about them.
struct LayerEdges {
  std::size_t block;
  std::int64_t features;   // of the layer's input
  std::int64_t neurons;    // of its output
  std::int64_t per_group;  // features that one output sees
  at::Tensor keep;         // [features, features]: row n says how much of each input is left when n is isolated
  std::vector<float> from_boundaries;  // [features, K - 1]
  std::vector<float> to_boundaries;    // [neurons, K - 1]
  std::vector<std::uint32_t> from, to;
  std::vector<std::uint32_t> counts;  // [edges, K, K]
  std::vector<char> covered;          // [edges]
};

class CausalCoverage : public Criterion {
 public:
  CausalCoverage(const Options& options, const CriterionContext& context, const LayerMoments& moments)
      : Criterion(context.layout),
        splits_(options.integer("splits")),
        critical_(critical_value(std::pow(static_cast<double>(splits_ - 1), 2), options.real("p"))),
        quantiles_(options.text("sections") == "quantile"),
        moments_(moments) {
    if (context.layout.layers.size() != context.layout.blocks.size())
      bad_usage("cac needs to know the network's layers");
    for (std::size_t b = 0; b < context.layout.blocks.size(); ++b) {
      if (context.layout.layers[b]) {
        all_edges_ += static_cast<std::int64_t>(edge_count(*context.layout.layers[b]));
      } else {
        unknown_.push_back(context.layout.blocks[b].tap);
      }
    }
    if (all_edges_ == 0)
      bad_usage("cac needs convolutions or dense layers among the taps, with channels as neurons (--neurons channel)");
    std::int64_t limit = std::min(all_edges_, options.integer("edges"));
    std::int64_t seen = 0;
    for (std::size_t b = 0; b < context.layout.blocks.size(); ++b) {
      if (context.layout.layers[b]) add_layer(b, *context.layout.layers[b], limit, seen);
    }
  }

  // Whether an edge was ever significant depends on when it is tested; what is counted does not.
  CriterionTraits traits() const override { return {false, false, true, false}; }
  TraceNeeds needs() const override { return {false, true}; }

  Covered covered() const override {
    Covered sum;
    for (const LayerEdges& layer : layers_) {
      sum.covered += static_cast<double>(std::count(layer.covered.begin(), layer.covered.end(), 1));
      sum.total += static_cast<double>(layer.covered.size());
    }
    return sum;
  }

  std::vector<TapCovered> by_tap() const override {
    std::vector<TapCovered> result;
    for (const LayerEdges& layer : layers_)
      result.push_back({layout().blocks[layer.block].tap,
                        {static_cast<double>(std::count(layer.covered.begin(), layer.covered.end(), 1)),
                         static_cast<double>(layer.covered.size())}});
    return result;
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> result;
    auto sampled = static_cast<std::int64_t>(covered().total);
    if (sampled < all_edges_) result.push_back(fmt::format("{} of {} edges are sampled", sampled, all_edges_));
    for (const std::string& tap : unknown_)
      result.push_back(
          fmt::format("{} is not a convolution or dense layer of a known kind: its edges are not counted", tap));
    return result;
  }

 private:
  static std::uint64_t edge_count(const LinearLayer& layer) {
    return static_cast<std::uint64_t>(layer.weight.size(0) * layer.weight.size(1));
  }

  void add_layer(std::size_t block, const LinearLayer& layer, std::int64_t limit, std::int64_t& seen) {
    LayerEdges edges;
    edges.block = block;
    edges.features = layer.features();
    edges.neurons = layer.weight.size(0);
    edges.per_group = layer.weight.size(1);
    edges.from_boundaries = moments_.layers()[block].features.boundaries(splits_, quantiles_);
    edges.to_boundaries = moments_.layers()[block].neurons.boundaries(splits_, quantiles_);
    at::Tensor covariance = moments_.layers()[block].products.abs();
    at::Tensor share = covariance / covariance.sum(1, /*keepdim=*/true).clamp_min(std::numeric_limits<double>::min());
    edges.keep = (1 - share).to(at::kFloat);
    edges.keep.diagonal().fill_(1);
    std::int64_t outputs_per_group = edges.neurons / layer.groups;
    for (std::int64_t m = 0; m < edges.neurons; ++m) {
      for (std::int64_t j = 0; j < edges.per_group; ++j, ++seen) {
        // Every (all / limit)-th edge, counted over all layers.
        if ((seen + 1) * limit / all_edges_ == seen * limit / all_edges_) continue;
        edges.from.push_back(static_cast<std::uint32_t>(m / outputs_per_group * edges.per_group + j));
        edges.to.push_back(static_cast<std::uint32_t>(m));
      }
    }
    edges.counts.assign(edges.from.size() * static_cast<std::size_t>(splits_ * splits_), 0);
    edges.covered.assign(edges.from.size(), 0);
    layers_.push_back(std::move(edges));
  }

  // Which section a value falls into: as many boundaries as are not above it.
  std::int64_t section_of(float value, const float* boundaries) const {
    std::int64_t section = 0;
    for (std::int64_t s = 0; s < splits_ - 1; ++s) section += value >= boundaries[s] ? 1 : 0;
    return section;
  }

  // For every sampled edge of one input: the cell of its table that the input falls into.
  void find_cells(const LayerEdges& layer, const Traces& traces, std::int64_t row, std::uint16_t* cells) const {
    const LinearLayer& linear = *layout().layers[layer.block];
    const LayerTrace& trace = traces.layers[layer.block];
    const TraceBlock& block = layout().blocks[layer.block];
    std::int64_t groups = linear.groups;
    std::int64_t outputs_per_group = layer.neurons / groups;
    std::vector<std::int64_t> from_section(static_cast<std::size_t>(layer.features));
    const float* feature = trace.features.data_ptr<float>() + row * layer.features;
    for (std::int64_t j = 0; j < layer.features; ++j)
      from_section[static_cast<std::size_t>(j)] =
          section_of(feature[j], layer.from_boundaries.data() + j * (splits_ - 1));
    const float* outputs = traces.row(row) + block.first;
    at::Tensor windows = trace.windows.select(0, row);  // [features, kernel]
    at::Tensor weight = linear.weight.reshape({layer.neurons, layer.per_group, -1});
    std::vector<at::Tensor> isolated;  // by group [features of the group, outputs of the group]
    std::vector<at::Tensor> whole;     // by group [outputs of the group]
    for (std::int64_t g = 0; g < groups; ++g) {
      at::Tensor mine = windows.narrow(0, g * layer.per_group, layer.per_group);
      // What feature j adds to output m: sum over the kernel of weight x window mean.
      at::Tensor added = (weight.narrow(0, g * outputs_per_group, outputs_per_group) * mine).sum(2);
      at::Tensor keep =
          layer.keep.narrow(0, g * layer.per_group, layer.per_group).narrow(1, g * layer.per_group, layer.per_group);
      isolated.push_back(at::mm(keep, added.t()).contiguous());
      whole.push_back(added.sum(1).contiguous());
    }
    for (std::size_t e = 0; e < layer.from.size(); ++e) {
      auto n = static_cast<std::int64_t>(layer.from[e]);
      auto m = static_cast<std::int64_t>(layer.to[e]);
      auto g = static_cast<std::size_t>(m / outputs_per_group);
      std::int64_t inner_n = n % layer.per_group;
      std::int64_t inner_m = m % outputs_per_group;
      // The bias, and whatever else the layer adds, stays as it was.
      float rest = outputs[m] - whole[g].data_ptr<float>()[inner_m];
      float value = isolated[g].data_ptr<float>()[inner_n * outputs_per_group + inner_m] + rest;
      std::int64_t to_section = section_of(value, layer.to_boundaries.data() + m * (splits_ - 1));
      cells[e] = static_cast<std::uint16_t>(from_section[static_cast<std::size_t>(n)] * splits_ + to_section);
    }
  }

  // Every expected count (row x column / total) at least 5, and chi² at least the critical value.
  bool significant(const std::uint32_t* table) const {
    std::array<double, kMostSplits> rows{};
    std::array<double, kMostSplits> columns{};
    auto k = static_cast<std::size_t>(splits_);
    double total = 0;
    for (std::size_t r = 0; r < k; ++r) {
      for (std::size_t c = 0; c < k; ++c) {
        double count = table[r * k + c];
        rows[r] += count;
        columns[c] += count;
        total += count;
      }
    }
    double smallest = *std::min_element(rows.begin(), rows.begin() + splits_) *
                      *std::min_element(columns.begin(), columns.begin() + splits_);
    if (total == 0 || smallest < kLeastExpected * total) return false;
    double chi_squared = 0;
    for (std::size_t r = 0; r < k; ++r) {
      for (std::size_t c = 0; c < k; ++c) {
        double expected = rows[r] * columns[c] / total;
        double difference = table[r * k + c] - expected;
        chi_squared += difference * difference / expected;
      }
    }
    return chi_squared >= critical_;
  }

  // After which of these inputs an edge from a feature can be significant at all: the smallest column is at most a K-th
  // of the total, so the smallest row must reach 5K. [inputs, features]; rows are the same for all edges of a feature.
  std::vector<char> ready(const LayerEdges& layer, const std::vector<std::uint16_t>& cells, std::int64_t count) const {
    auto features = static_cast<std::size_t>(layer.features);
    auto k = static_cast<std::size_t>(splits_);
    std::vector<double> rows(features * k, 0);
    std::vector<std::size_t> edge_of(features, layer.from.size());
    for (std::size_t e = layer.from.size(); e-- > 0;) edge_of[layer.from[e]] = e;
    std::vector<char> result(static_cast<std::size_t>(count) * features, 0);
    for (std::size_t n = 0; n < features; ++n) {
      std::size_t e = edge_of[n];
      if (e == layer.from.size()) continue;
      double* row = rows.data() + n * k;
      for (std::size_t cell = 0; cell < k * k; ++cell) row[cell / k] += layer.counts[e * k * k + cell];
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        row[cells[i * layer.from.size() + e] / k] += 1;
        result[i * features + n] = *std::min_element(row, row + k) >= kLeastExpected * static_cast<double>(k) ? 1 : 0;
      }
    }
    return result;
  }

  void run(const Traces& traces, std::vector<double>& gains) override {
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < traces.usable.size(); ++i) {
      if (traces.usable[i]) rows.push_back(static_cast<std::int64_t>(i));
    }
    auto n = static_cast<std::int64_t>(rows.size());
    auto cells_per_edge = static_cast<std::size_t>(splits_ * splits_);
    for (LayerEdges& layer : layers_) {
      std::size_t edges = layer.from.size();
      // Blocks of inputs bound the memory of the cells; edges are independent, so that workers share them.
      constexpr std::int64_t kRows = 64;
      for (std::int64_t first = 0; first < n; first += kRows) {
        std::int64_t count = std::min(kRows, n - first);
        std::vector<std::uint16_t> cells(edges * static_cast<std::size_t>(count));
        workers().run(count, [&](std::int64_t i, int) {
          find_cells(layer, traces, rows[static_cast<std::size_t>(first + i)],
                     cells.data() + static_cast<std::size_t>(i) * edges);
        });
        std::vector<char> may = ready(layer, cells, count);
        constexpr std::size_t kEdgesPerTask = 2048;
        std::size_t tasks = (edges + kEdgesPerTask - 1) / kEdgesPerTask;
        std::vector<std::vector<double>> newly(tasks, std::vector<double>(static_cast<std::size_t>(count), 0.0));
        workers().run(static_cast<std::int64_t>(tasks), [&](std::int64_t task, int) {
          auto t = static_cast<std::size_t>(task);
          for (std::size_t e = t * kEdgesPerTask; e < std::min(edges, (t + 1) * kEdgesPerTask); ++e) {
            std::uint32_t* table = layer.counts.data() + e * cells_per_edge;
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
              table[cells[i * edges + e]] += 1;
              if (layer.covered[e] || !may[i * static_cast<std::size_t>(layer.features) + layer.from[e]] ||
                  !significant(table))
                continue;
              layer.covered[e] = 1;
              newly[t][i] += 1;
            }
          }
        });
        for (const auto& task : newly) {
          for (std::size_t i = 0; i < task.size(); ++i)
            gains[static_cast<std::size_t>(rows[static_cast<std::size_t>(first) + i])] += task[i];
        }
      }
    }
  }

  void run_reset() override {
    for (LayerEdges& layer : layers_) {
      std::fill(layer.counts.begin(), layer.counts.end(), 0);
      std::fill(layer.covered.begin(), layer.covered.end(), 0);
    }
  }

  void run_merge(const Criterion& other) override {
    const auto& that = dynamic_cast<const CausalCoverage&>(other);
    auto cells = static_cast<std::size_t>(splits_ * splits_);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      LayerEdges& a = layers_[l];
      const LayerEdges& b = that.layers_[l];
      for (std::size_t i = 0; i < a.counts.size(); ++i) a.counts[i] += b.counts[i];
      for (std::size_t e = 0; e < a.covered.size(); ++e)
        a.covered[e] = a.covered[e] || b.covered[e] || significant(a.counts.data() + e * cells) ? 1 : 0;
    }
  }

  void run_save(ArchiveWriter& out) const override {
    for (const LayerEdges& layer : layers_) {
      out.put(layer.counts);
      out.put(layer.covered);
    }
  }

  void run_load(ArchiveReader& in) override {
    for (LayerEdges& layer : layers_) {
      layer.counts = in.get_vector<std::uint32_t>(layer.counts.size());
      layer.covered = in.get_vector<char>(layer.covered.size());
      if (std::any_of(layer.covered.begin(), layer.covered.end(), [](char c) { return c != 0 && c != 1; }))
        in.broken("holds an edge that is neither covered nor not");
    }
  }

  std::int64_t splits_;
  double critical_;
  bool quantiles_;
  const LayerMoments& moments_;
  std::int64_t all_edges_ = 0;
  std::vector<std::string> unknown_;
  std::vector<LayerEdges> layers_;
};

}  // namespace

CriterionEntry cac_entry() {
  return {"cac",
          "edges between neurons that are shown to matter",
          {{"splits", std::int64_t{8}, "sections of a neuron's range (K)", 2, kMostSplits, {}},
           {"sections",
            std::string("quantile"),
            "sections hold equal shares of the training data, or equal parts of "
            "its range",
            {},
            {},
            {"quantile", "range"}},
           {"p", 0.05, "significance an edge needs", 1e-12, 0.5, {}},
           {"edges", std::int64_t{200000}, "edges looked at; more are sampled evenly", 1, 1e8, {}}},
          [](const Options& options, const CriterionContext& context) {
            const Profile& profile = required_profile(context, "cac");
            return std::make_unique<CausalCoverage>(options, context, profile.part<LayerMoments>(kLayerMoments, "cac"));
          }};
}

std::unique_ptr<ProfilePart> make_layer_moments(const std::string& name, const TraceLayout& layout) {
  return name == kLayerMoments ? std::make_unique<LayerMoments>(layout) : nullptr;
}

std::vector<std::string> cac_parts(const Options& options, const TraceLayout& layout) {
  return {kLayerMoments};
}

}  // namespace galvani
