// How surprising an input is, given training traces: the scores behind lsc, dsc and mdsc, and what selection ranks by.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/coverage/profile.h"
#include "galvani/trace/trace.h"

namespace galvani {

class SurpriseScore {
 public:
  virtual ~SurpriseScore() = default;

  // One score per input; NaN for inputs that are not usable, or whose predicted class has no training traces.
  std::vector<double> score(const Traces& traces) const;
  // The same number from a plain loop in double precision, from which `score` may differ in its last bits unless it is
  // exact.
  double score_alone(const Traces& traces, std::int64_t row) const;

  virtual bool exact() const = 0;

  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  explicit SurpriseScore(TraceBlock block) : block_(std::move(block)) {}
  const TraceBlock& block() const { return block_; }
  std::vector<std::string> notes_;

 private:
  // Scores of inputs that were all predicted as `label`: [m, width] float, a few hundred at most.
  virtual void run(const at::Tensor& traces, std::int64_t label, double* out) const = 0;
  virtual double run_alone(const float* trace, std::int64_t label) const = 0;

  TraceBlock block_;
};

// "lsa", "dsa" or "mdsa" with options; see `galvani cover --list`.
std::unique_ptr<SurpriseScore> make_surprise(const Spec& spec, const TraceLayout& layout, const Profile& profile);
// The criterion that cuts this score into buckets: it needs the same part of a profile.
Spec surprise_criterion(const Spec& score);

}  // namespace galvani
