// Layers that draw random numbers (dropout, noise), made to draw from streams of ours: ATen's generator is shared by
// all threads, so what it gives depends on their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/model/network.h"

namespace torch::jit {
struct Graph;
struct Node;
}  // namespace torch::jit

namespace galvani {

// Where the calling thread's random layers draw from while it lives.
class RandomScope {
 public:
  // One draw for a micro-batch as a whole, as training does.
  explicit RandomScope(const Rng& stream);
  // Every input of a micro-batch draws from a stream of its own: rows [first, first + count) of the request.
  RandomScope(const RandomLayers& random, std::int64_t first, std::int64_t count);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  friend struct RandomDraw;
  Rng stream_;
  std::vector<std::int64_t> numbers_;  // of the rows; empty: one draw for all
  const RandomScope* outer_;
};

// Whether it draws whatever the mode: noise, not dropout.
bool draws_noise(const torch::jit::Node* node);

// How many layers of the graph draw: noise, and dropout even where evaluation turns it off.
std::int64_t count_random_layers(const torch::jit::Graph& graph);

enum class RandomMode {
  noise,     // what draws in evaluation too
  training,  // and dropout, where its flag says so
  awake,     // and dropout, although the graph is one of evaluation
};
// Lets those layers draw from the RandomScope; without one, every row draws from a stream of its own. Sources of random
// numbers that are not known here stay as they are; `awake` refuses them, naming `label`.
void draw_from_scope(torch::jit::Graph& graph, RandomMode mode, const std::string& label);

}  // namespace galvani
