// Criteria that are a set of features: an input's gain is how many of its features are new.
#pragma once

#include <vector>

#include "galvani/coverage/criterion.h"

namespace galvani {

class SetCriterion : public Criterion {
 public:
  const FeatureSet* covered_features() const final { return &set_; }
  Covered covered() const final;
  std::vector<TapCovered> by_tap() const final;

 protected:
  // `universe` bounds the ids (0: any). `totals` has one number per block of the layout, how many of its features can
  // be covered; empty if features do not belong to taps, or are without end.
  SetCriterion(const TraceLayout& layout, std::uint64_t universe, std::vector<double> totals);

 private:
  // The features of a usable row, appended to `out`. Either this or collect_batch is overridden.
  virtual void collect(const Traces& traces, std::int64_t row, std::vector<std::uint64_t>& out) const {}
  virtual void collect_batch(const Traces& traces, Features& out) const;
  // The block a feature belongs to.
  virtual std::size_t block_of(std::uint64_t id) const { return 0; }
  // Whatever the totals say, for criteria that count over all taps together.
  virtual double total() const;

  void run(const Traces& traces, std::vector<double>& gains) final;
  bool run_features(const Traces& traces, Features& out) const final;
  void run_reset() final { set_.clear(); }
  void run_merge(const Criterion& other) final;
  void run_save(ArchiveWriter& out) const final { set_.save(out); }
  void run_load(ArchiveReader& in) final { set_.load(in); }

  FeatureSet set_;
  std::vector<double> totals_;
  Features scratch_;
};

// For features numbered neuron by neuron: the block of each neuron, and totals of `per_neuron` each.
std::vector<std::uint32_t> blocks_of_neurons(const TraceLayout& layout);
std::vector<double> neurons_by_block(const TraceLayout& layout, double per_neuron = 1);

}  // namespace galvani
