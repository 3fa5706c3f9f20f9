#include "galvani/select/explain.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"
#include "galvani/mutate/one_each.h"
#include "galvani/trace/trace.h"

namespace galvani {
namespace {

constexpr std::size_t kReasonPiece = 256;

// Mean square of each block's values about their mean, as pieces come by.
class BlockSpread {
 public:
  explicit BlockSpread(const TraceLayout& layout) : layout_(layout), sums_(layout.blocks.size()) {}
  void add(const at::Tensor& values) {
    for (std::size_t b = 0; b < sums_.size(); ++b) {
      at::Tensor own = values.narrow(1, layout_.blocks[b].first, layout_.blocks[b].count).to(at::kDouble);
      own = own.masked_fill(own.isfinite().logical_not(), 0);
      sums_[b].count += static_cast<double>(own.numel());
      sums_[b].sum += own.sum().item<double>();
      sums_[b].squares += own.square().sum().item<double>();
    }
  }
  double deviation(std::size_t block) const {
    const Sums& s = sums_[block];
    if (s.count == 0) return 1;
    double variance = s.squares / s.count - (s.sum / s.count) * (s.sum / s.count);
    return variance > 0 ? std::sqrt(variance) : 1;
  }

 private:
  struct Sums {
    double count = 0, sum = 0, squares = 0;
  };
  const TraceLayout& layout_;
  std::vector<Sums> sums_;
};

void note_second(const at::Tensor& p, std::int64_t verdict, PickReason& reason) {
  for (std::int64_t c = 0; c < p.size(0); ++c) {
    auto share = p[c].item<double>();
    if (c == verdict || verdict == kNotANumber || !(share > reason.confidence)) continue;
    reason.second = c;
    reason.confidence = share;
  }
}

// The picks' neurons beside those of what they are compared with.
class Comparison {
 public:
  Comparison(Network& network, const DataView& pool, const ReasonRequest& request)
      : pool_(pool),
        request_(request),
        tracer_(network, network.select_taps("default"), NeuronUnit::channel),
        spread_(tracer_.layout()),
        sums_(at::zeros({tracer_.layout().neurons}, at::kDouble)) {
    if (request.originals == nullptr) maker_.emplace(catalogue_for(request.mutators, pool.type().kind), pool.type());
  }

  SelectionReasons run() {
    Progress progress("explaining", static_cast<std::int64_t>(request_.rows.size()), pool_.type().noun());
    for (std::size_t begin = 0; begin < request_.rows.size(); begin += kReasonPiece) {
      check_interrupt();
      std::size_t end = std::min(request_.rows.size(), begin + kReasonPiece);
      look_at({request_.rows.begin() + static_cast<std::ptrdiff_t>(begin),
               request_.rows.begin() + static_cast<std::ptrdiff_t>(end)});
      progress.advance(static_cast<std::int64_t>(end - begin));
    }
    if (compared_) sum_up();
    return std::move(reasons_);
  }

 private:
  void look_at(const std::vector<std::int64_t>& rows) {
    at::Tensor inputs = pool_.fetch(rows), others;
    std::vector<std::string> against(rows.size());
    if (request_.originals != nullptr) {
      others = request_.originals->fetch(rows);
      std::fill(against.begin(), against.end(), "original");
    } else if (maker_) {
      Mutants mutants = maker_->make(inputs, rows, Rng(request_.seed).derive("explanation"));
      others = mutants.images;
      for (std::size_t i = 0; i < rows.size(); ++i)
        against[i] = mutants.each[i].valid ? maker_->set().text(mutants.each[i].rule) : "";
    }
    Traces own = tracer_.trace(inputs);
    std::optional<Traces> other;
    if (others.defined()) other = tracer_.trace(others);
    spread_.add(own.values);
    if (other) {
      at::Tensor change = (own.values - other->values).abs().to(at::kDouble);
      changes_.push_back(change.masked_fill(change.isfinite().logical_not(), 0));
      sums_ += changes_.back().sum(0);
      compared_ = true;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      PickReason reason;
      reason.row = rows[i];
      reason.against = against[i];
      auto at = static_cast<std::int64_t>(i);
      note_second(probabilities(tracer_.network().info(), own.logits.narrow(0, at, 1))[0],
                  own.predicted[at].item<std::int64_t>(), reason);
      if (other) reason.verdict = other->predicted[at].item<std::int64_t>();
      reasons_.picks.push_back(std::move(reason));
    }
  }

  void sum_up() {
    const TraceLayout& layout = tracer_.layout();
    auto n = static_cast<double>(reasons_.picks.size());
    at::Tensor scale = at::ones({layout.neurons}, at::kDouble);
    for (std::size_t b = 0; b < layout.blocks.size(); ++b)
      scale.narrow(0, layout.blocks[b].first, layout.blocks[b].count).fill_(1 / spread_.deviation(b));
    at::Tensor mean = sums_ * scale / n;
    for (const TraceBlock& block : layout.blocks) {
      at::Tensor own = mean.narrow(0, block.first, block.count);
      auto most = own.argmax().item<std::int64_t>();
      reasons_.layers.push_back({block.tap, own.mean().item<double>(), most, own[most].item<double>()});
    }
    std::stable_sort(reasons_.layers.begin(), reasons_.layers.end(),
                     [](const LayerChange& a, const LayerChange& b) { return a.change > b.change; });
    std::size_t pick = 0;
    for (const at::Tensor& piece : changes_) {
      auto [most, neuron] = (piece * scale).max(1);
      for (std::int64_t i = 0; i < piece.size(0); ++i, ++pick) {
        PickReason& reason = reasons_.picks[pick];
        auto column = neuron[i].item<std::int64_t>();
        for (const TraceBlock& block : layout.blocks) {
          if (column < block.first || column >= block.first + block.count) continue;
          reason.tap = block.tap;
          reason.neuron = column - block.first;
        }
        reason.change = most[i].item<double>();
      }
    }
  }

  const DataView& pool_;
  const ReasonRequest& request_;
  Tracer tracer_;
  BlockSpread spread_;
  at::Tensor sums_;                  // [neurons]
  std::vector<at::Tensor> changes_;  // [n, neurons] of each piece
  std::optional<OneEach> maker_;
  bool compared_ = false;
  SelectionReasons reasons_;
};

}  // namespace

SelectionReasons explain_picks(Network& network, const DataView& pool, const ReasonRequest& request) {
  return Comparison(network, pool, request).run();
}

}  // namespace galvani
