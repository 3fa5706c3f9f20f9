// Shapley values: what each player of a cooperative game is worth to it.
//
// A game gives every coalition a number. The Shapley value of a player is what it adds to that number, averaged over
// all orders in which the players may come in. With the neurons of a network as players it says how much of a change of
// the loss each neuron answers for (DeepSensor, definitions 1 and 2).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"

namespace galvani {

// Several games of the same players, such as one an input. A coalition is a mask: 1 for who takes part, 0 for who does
// not. What follows a path asks for degrees in between, too.
class Game {
 public:
  virtual ~Game() = default;
  virtual std::int64_t size() const = 0;  // games
  virtual std::int64_t players() const = 0;

  // What coalitions are worth. games [M] int64, masks [M, players] float → [M] double.
  virtual at::Tensor worth(const at::Tensor& games, const at::Tensor& masks) = 0;

  // Where all players take part to the same degree.
  struct Diagonal {
    at::Tensor worth;   // [M, Q] double
    at::Tensor slopes;  // [M, players] double: derivatives by each player's degree, weighted and added up
  };
  // games [M] int64, degrees and weights [M, Q] double.
  virtual Diagonal along(const at::Tensor& games, const at::Tensor& degrees, const at::Tensor& weights) = 0;
};

// Rows are games.
struct ShapleyValues {
  at::Tensor values;            // [N, players] double
  at::Tensor half_widths;       // [N, players] double: half of the 95% intervals; undefined where nothing was drawn
  at::Tensor nobody, all;       // [N] double: what the empty coalition and that of all are worth
  at::Tensor worths;            // [N] int64: coalitions that were evaluated
  at::Tensor slopes;            // [N] int64: of these, with derivatives
  at::Tensor residual() const;  // [N] double: what the values leave of the difference, by the efficiency axiom nothing
};

class ShapleyEstimator {
 public:
  virtual ~ShapleyEstimator() = default;
  const std::string& id() const { return id_; }      // "permutation"
  const std::string& spec() const { return spec_; }  // every option resolved
  // What it gives are Shapley values: exactly, or up to the error of drawing. Of `path` they are others.
  virtual bool is_shapley() const { return true; }
  virtual bool needs_slopes() const { return false; }

  // What is drawn follows from the stream alone, so no game depends on the others. Usage error if there are too many
  // players for it.
  ShapleyValues estimate(Game& game, const Rng& rng) const;

 private:
  friend std::unique_ptr<ShapleyEstimator> make_shapley(const Spec& spec);
  // `found` comes with the worth of nobody and of all; values are to be filled in, and counts to be added to. Of at
  // least two players.
  virtual void run(Game& game, const Rng& rng, ShapleyValues& found) const = 0;

  std::string id_;
  std::string spec_;
};

using ShapleyRegistry = Registry<std::unique_ptr<ShapleyEstimator>>;
const ShapleyRegistry& shapley_estimators();  // exact, permutation, regression, path
std::unique_ptr<ShapleyEstimator> make_shapley(const Spec& spec);

}  // namespace galvani
