// Neuron path coverage (Xie et al. 2022): how alike an input's decision path is to those of its class.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "coverage/builtin.h"
#include "coverage/set_criterion.h"
#include "galvani/base/error.h"

namespace galvani {
namespace {

using Path = std::vector<char>;  // [neurons]: is it on the path?

// Per tap the smallest set of neurons whose positive relevance reaches `alpha` of the tap's; of equal ones the first.
void find_path(const float* relevance, const TraceLayout& layout, double alpha, Path& path) {
  path.assign(static_cast<std::size_t>(layout.neurons), 0);
  thread_local std::vector<std::int64_t> order;
  for (const TraceBlock& block : layout.blocks) {
    const float* values = relevance + block.first;
    order.clear();
    double total = 0;
    for (std::int64_t j = 0; j < block.count; ++j) {
      if (values[j] > 0) {
        order.push_back(j);
        total += values[j];
      }
    }
    std::sort(order.begin(), order.end(),
              [&](std::int64_t a, std::int64_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
    double sum = 0;
    for (std::int64_t j : order) {
      if (sum >= alpha * total) break;
      path[static_cast<std::size_t>(block.first + j)] = 1;
      sum += values[j];
    }
  }
}

// Jaccard similarity of two paths within one block; two empty sets are alike.
double similarity(const Path& a, const char* b, const TraceBlock& block) {
  std::int64_t both = 0;
  std::int64_t either = 0;
  for (std::int64_t j = block.first; j < block.first + block.count; ++j) {
    bool in_a = a[static_cast<std::size_t>(j)] != 0;
    bool in_b = b[j] != 0;
    both += in_a && in_b ? 1 : 0;
    either += in_a || in_b ? 1 : 0;
  }
  return either == 0 ? 1 : static_cast<double>(both) / static_cast<double>(either);
}

// The decision paths of each class: `clusters` of them, each the neurons that at least `beta` of its members share.
class Paths : public ProfilePart {
 public:
  Paths(const TraceLayout& layout, const Options& options)
      : layout_(layout),
        alpha_(options.real("alpha")),
        beta_(options.real("beta")),
        clusters_(options.integer("clusters")),
        learned_(static_cast<std::size_t>(layout.classes)) {
    paths_.assign(static_cast<std::size_t>(layout.classes * clusters_ * layout.neurons), 0);
  }

  TraceNeeds needs() const override { return {true, false}; }

  void learn(const Traces& traces) override {
    Path path;
    for (std::int64_t i = 0; i < traces.size(); ++i) {
      const float* relevance = traces.relevance.data_ptr<float>() + i * layout_.neurons;
      if (!traces.usable[static_cast<std::size_t>(i)]) continue;
      find_path(relevance, layout_, alpha_, path);
      auto& members = learned_[static_cast<std::size_t>(traces.predicted.data_ptr<std::int64_t>()[i])];
      members.insert(members.end(), path.begin(), path.end());
    }
  }

  void finish() override {
    for (std::int64_t label = 0; label < layout_.classes; ++label) {
      cluster(label);
      learned_[static_cast<std::size_t>(label)].clear();
    }
  }

  std::string summary() const override {
    return fmt::format("decision paths of {} classes, {} each", layout_.classes, clusters_);
  }
  void save(ArchiveWriter& out) const override { out.put(paths_); }
  void load(ArchiveReader& in) override {
    paths_ = in.get_vector<char>(paths_.size());
    if (std::any_of(paths_.begin(), paths_.end(), [](char c) { return c != 0 && c != 1; }))
      in.broken("holds a path that is none");
  }

  const char* path(std::int64_t label, std::int64_t cluster) const {
    return paths_.data() + (label * clusters_ + cluster) * layout_.neurons;
  }

 private:
  // Lloyd's algorithm on the paths, started from members far from each other; with one cluster, all members.
  void cluster(std::int64_t label) {
    const std::vector<char>& members = learned_[static_cast<std::size_t>(label)];
    auto width = static_cast<std::size_t>(layout_.neurons);
    std::size_t n = members.size() / width;
    if (n == 0) return;
    std::size_t k = std::min(static_cast<std::size_t>(clusters_), n);
    auto member = [&](std::size_t i) { return members.data() + i * width; };
    std::vector<std::vector<double>> centres = {{member(0), member(0) + width}};
    auto distance = [&](std::size_t i, const std::vector<double>& centre) {
      double sum = 0;
      for (std::size_t j = 0; j < width; ++j) sum += std::abs(member(i)[j] - centre[j]);
      return sum;
    };
    while (centres.size() < k) {
      std::size_t farthest = 0;
      double most = -1;
      for (std::size_t i = 0; i < n; ++i) {
        double nearest = distance(i, centres[0]);
        for (const auto& centre : centres) nearest = std::min(nearest, distance(i, centre));
        if (nearest > most) {
          most = nearest;
          farthest = i;
        }
      }
      centres.emplace_back(member(farthest), member(farthest) + width);
    }
    std::vector<std::size_t> of(n, 0);
    std::vector<double> sizes(k, 0);
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
      bool moved = round == 0;
      for (std::size_t i = 0; i < n && k > 1; ++i) {
        std::size_t best = 0;
        for (std::size_t c = 1; c < k; ++c) {
          if (distance(i, centres[c]) < distance(i, centres[best])) best = c;
        }
        moved |= of[i] != best;
        of[i] = best;
      }
      if (!moved) break;
      std::fill(sizes.begin(), sizes.end(), 0);
      for (auto& centre : centres) std::fill(centre.begin(), centre.end(), 0);
      for (std::size_t i = 0; i < n; ++i) {
        sizes[of[i]] += 1;
        for (std::size_t j = 0; j < width; ++j) centres[of[i]][j] += member(i)[j];
      }
      for (std::size_t c = 0; c < k; ++c) {
        for (double& v : centres[c]) v /= std::max(1.0, sizes[c]);
      }
    }
    for (std::size_t c = 0; c < k; ++c) {
      char* path = paths_.data() + (label * clusters_ + static_cast<std::int64_t>(c)) * layout_.neurons;
      for (std::size_t j = 0; j < width; ++j) path[j] = centres[c][j] >= beta_ ? 1 : 0;
    }
  }

  TraceLayout layout_;
  double alpha_;
  double beta_;
  std::int64_t clusters_;
  std::vector<std::vector<char>> learned_;  // by class, one path after the other
  std::vector<char> paths_;                 // [classes, clusters, neurons]
};

const OptionSchema kPathOptions = {
    {"alpha", 0.7, "share of a tap's positive relevance that is on the path", 0, 1, {}},
    {"beta", 0.6, "share of a class's members a neuron must be on the path of", 0, 1, {}},
    {"clusters", std::int64_t{1}, "paths per class", 1, 1000, {}},
};

OptionSchema schema() {
  OptionSchema all = kPathOptions;
  all.push_back({"buckets", std::int64_t{100}, "buckets that similarity is cut into", 1, 1e6, {}});
  return all;
}

std::string part_name(const Options& options) {
  return fmt::format("paths:alpha={},beta={},clusters={}", options.real("alpha"), options.real("beta"),
                     options.integer("clusters"));
}

// A feature is (class, cluster, tap, bucket of similarity).
class PathCoverage : public SetCriterion {
 public:
  PathCoverage(const Options& options, const CriterionContext& context, const Paths& paths)
      : SetCriterion(
            context.layout, universe(options, context.layout),
            std::vector<double>(context.layout.blocks.size(), static_cast<double>(per_tap(options, context.layout)))),
        paths_(paths),
        alpha_(options.real("alpha")),
        clusters_(options.integer("clusters")),
        buckets_(options.integer("buckets")) {}

  TraceNeeds needs() const override { return {true, false}; }

 private:
  static std::int64_t per_tap(const Options& options, const TraceLayout& layout) {
    return layout.classes * options.integer("clusters") * options.integer("buckets");
  }
  static std::uint64_t universe(const Options& options, const TraceLayout& layout) {
    return static_cast<std::uint64_t>(per_tap(options, layout)) * layout.blocks.size();
  }

  void collect(const Traces& traces, std::int64_t row, std::vector<std::uint64_t>& out) const override {
    const float* relevance = traces.relevance.data_ptr<float>() + row * layout().neurons;
    thread_local Path path;
    find_path(relevance, layout(), alpha_, path);
    std::int64_t label = traces.predicted.data_ptr<std::int64_t>()[row];
    // The cluster it is most like, over all taps.
    std::int64_t best = 0;
    double most = -1;
    for (std::int64_t c = 0; c < clusters_; ++c) {
      double sum = 0;
      for (const TraceBlock& block : layout().blocks) sum += similarity(path, paths_.path(label, c), block);
      if (sum > most) {
        most = sum;
        best = c;
      }
    }
    for (std::size_t t = 0; t < layout().blocks.size(); ++t) {
      double alike = similarity(path, paths_.path(label, best), layout().blocks[t]);
      auto bucket = std::min(buckets_ - 1, static_cast<std::int64_t>(alike * static_cast<double>(buckets_)));
      auto tap = static_cast<std::int64_t>(t);
      out.push_back(
          static_cast<std::uint64_t>(((tap * layout().classes + label) * clusters_ + best) * buckets_ + bucket));
    }
  }
  std::size_t block_of(std::uint64_t id) const override {
    return id / static_cast<std::uint64_t>(layout().classes * clusters_ * buckets_);
  }

  const Paths& paths_;
  double alpha_;
  std::int64_t clusters_;
  std::int64_t buckets_;
};

}  // namespace

CriterionEntry npc_entry() {
  return {"npc", "buckets of similarity to the class's decision path", schema(),
          [](const Options& options, const CriterionContext& context) {
            const auto& paths = required_profile(context, "npc").part<Paths>(part_name(options), "npc");
            return std::make_unique<PathCoverage>(options, context, paths);
          }};
}

std::unique_ptr<ProfilePart> make_paths(const std::string& name, const TraceLayout& layout) {
  if (name.rfind("paths:", 0) != 0) return nullptr;
  return std::make_unique<Paths>(layout, Options("paths", kPathOptions, Spec::parse(name)));
}

std::vector<std::string> paths_part(const Options& options, const TraceLayout& layout) {
  return {part_name(options)};
}

}  // namespace galvani
