// What an attack works with: inputs as floats in the unit of the file, passes through the network on those that are
// still standing, and a place to hand in what it found.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "galvani/attack/attack.h"

namespace galvani {

// R rows, each an input that the network gets right. Tensors of an attack's state are kept for all R rows; a pass takes
// the rows it is about as [K] int64 indices, in ascending order, and gives [K, ...].
class Search {
 public:
  // A number for each row, [B], or J of them, [B, J], of its scores [B, classes] and of its goals [B] or [B, G]:
  // classes that the author chose. Rows beyond the K are padding. Called from several threads at once.
  using Loss = std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& goals)>;

  struct Slope {
    at::Tensor logits;    // [K, classes]
    at::Tensor loss;      // [K] or [K, J]
    at::Tensor gradient;  // [K, ...] or [K, J, ...] per unit of the file
  };

  // `right` are the rows of the task that the network gets right, logits the scores of all. Keeps references.
  Search(Network& network, const Attack& attack, const AttackTask& task, const at::Tensor& right,
         const at::Tensor& logits);

  std::int64_t size() const { return originals_.size(0); }
  std::int64_t values() const { return values_; }  // numbers in an input
  std::int64_t classes() const { return classes_; }
  const at::Tensor& originals() const { return originals_; }              // [R, ...] float
  const at::Tensor& original_logits() const { return original_logits_; }  // [R, classes]
  const at::Tensor& labels() const { return labels_; }                    // [R] int64
  bool targeted() const { return targets_.defined(); }
  const at::Tensor& targets() const { return targets_; }  // [R] int64, if targeted
  // The class that a loss on scores is about: the label to get away from, or the target to get to.
  const at::Tensor& goals() const { return targeted() ? targets_ : labels_; }
  Norm norm() const { return norm_; }
  bool bounded() const { return bounded_; }
  double radius() const { return radius_; }  // of the ball, in the unit of the file; L∞: a whole number of levels
  float low() const { return low_; }         // of a value
  float high() const { return high_; }
  float full() const { return full_; }  // what counts as 1
  Rng& stream(std::int64_t row) { return streams_[static_cast<std::size_t>(row)]; }

  const float* original(std::int64_t row) const { return row_of(originals_, row); }
  at::Tensor all() const;  // rows
  // Rows without a change that would survive saving, for attacks within a bound; all rows otherwise.
  at::Tensor standing() const;
  // The j-th best other class of each row's original scores, j from 0: [R] int64. REQUIRES j < classes() - 1.
  at::Tensor other_class(std::int64_t j) const;

  // Passes: x [R, ...] float, of which `rows` are run.
  at::Tensor logits(const at::Tensor& x, const at::Tensor& rows);
  // goals [R] or [R, G] int64. With `losses` J > 0 the loss gives [B, J]: J backward passes after one forward pass.
  Slope slope(const at::Tensor& x, const at::Tensor& rows, const Loss& loss, const at::Tensor& goals,
              std::int64_t losses = 0);
  // A loss about goals() that grows as the row gets where it should: of the label as it is, of a target turned round.
  Loss towards(Loss loss) const;

  // Hands in x [R, ...] of `rows`, whose scores are logits [K, classes]; gives which of them fool the network, as they
  // are: [K] bool. Of attacks within a bound, one that fools once it is saved, too, is kept and its row stands no
  // longer; what lies outside the ball is ignored. Otherwise the nearest one of a row is kept.
  at::Tensor offer(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& logits);

  // Runs work(k, rows[k]) for every row in worker threads.
  void each(const at::Tensor& rows, const std::function<void(std::int64_t k, std::int64_t row)>& work) const;
  // Brings a row, values() floats, back to the ball around its original (if there is one) and to the range of the
  // values.
  void project(float* x, std::int64_t row) const;
  // A random point of the ball for a row, from its stream: uniform, or with `surface` at the largest distance.
  void random_start(float* x, std::int64_t row, bool surface);

  float* row_of(const at::Tensor& x, std::int64_t row) const { return x.data_ptr<float>() + row * values_; }
  // How far a row is from its original, in the attack's norm and the unit of the file.
  double distance(const float* x, std::int64_t row) const;

 private:
  friend class Attack;
  at::Tensor gather(const at::Tensor& all, const at::Tensor& rows) const;
  at::Tensor references_of(const at::Tensor& rows) const;  // undefined: the task has none
  void count(const at::Tensor& rows, std::int64_t backward);
  at::Tensor fools(const at::Tensor& logits, const at::Tensor& rows) const;  // [K] bool
  at::Tensor keep(const at::Tensor& rows);  // those of saved_ that fool; gives the others

  // To whole numbers, without leaving the ball.
  void round(float* x, std::int64_t row) const;
  // Moves values of x by one, where that adds most to the margin, until it should have grown by `need`; first between
  // the two whole numbers around what was found, then beyond. False if there is nothing to move.
  bool improve(const float* found, const float* gradient, double need, std::int64_t row, float* x) const;
  // Looks for whole numbers that keep what was found.
  void settle();

  Network& network_;
  const AttackTask& task_;
  at::Tensor originals_, original_logits_, labels_, targets_, references_;
  std::vector<Rng> streams_;
  std::int64_t values_, classes_;
  Norm norm_;
  bool bounded_;
  double radius_;
  float low_, high_, full_;
  bool gradient_seen_ = false;

  at::Tensor found_;  // [R, ...] float: what fooled it
  at::Tensor saved_;  // [R, ...] float, whole numbers: what fools it once saved, if kept_
  at::Tensor saved_logits_;
  std::vector<char> fooled_, kept_;
  std::vector<double> nearest_;
  std::vector<std::int64_t> forward_, backward_;
};

// Error(bad_input) if gradients do not reach the input at all, neither of some of `inputs` nor of noise.
void check_differentiable(Network& network, const at::Tensor& inputs, const at::Tensor& references);

// Losses that attacks share; they grow as the network gets away from the label.
//
// log Σ_{j≠g} exp z_j - z_g. Cross entropy is log(1 + exp of it): gradients point the same way, but these do not vanish
// when the network is sure.
at::Tensor odds_loss(const at::Tensor& logits, const at::Tensor& goals);
// max_{j≠g} z_j - z_g
at::Tensor margin_loss(const at::Tensor& logits, const at::Tensor& goals);
// The same over z_(1) - z_(3), the difference of the best and the third best score; with two classes the margin alone.
at::Tensor dlr_loss(const at::Tensor& logits, const at::Tensor& goals);

}  // namespace galvani
