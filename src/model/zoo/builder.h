// Builds the ONNX graph of a network layer by layer, with freshly drawn weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/model/zoo.h"

namespace galvani::zoo {

// What a layer gives to the next: a value of the graph and its shape without the batch, [C, H, W], [C, length] or
// [features].
struct Value {
  std::string name;
  std::vector<std::int64_t> shape;
};

struct ConvOptions {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  bool unit = false;  // weights that keep the spread of their input, for a layer that no ReLU follows
};

// A layer's name is the name of its node and of the value it gives; its weights are called as PyTorch would
// (`conv1.weight`, `bn1.running_mean`). A weight is drawn from a stream of its own, derived from its name, so a layer
// more or less leaves all others as they were.
class GraphBuilder {
 public:
  GraphBuilder(std::string architecture, const ArchitectureShape& shape, const Rng& rng);
  ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  std::int64_t classes() const { return shape_.classes; }
  std::int64_t smaller_side() const;
  // A usage error, in one sentence, for images with a side below `side`, and for sounds.
  void require_image(std::int64_t side) const;
  // The same for sounds of fewer samples, and for images.
  void require_sound(std::int64_t length) const;

  Value input() const;
  std::int64_t rate() const { return shape_.rate; }
  // Loudness, as a logarithm, of `mels` bands over time: [1, length] → [mels, frames]. Windows of 25 ms every 10 ms
  // (Hann), their Fourier transform as two convolutions, power, triangular bands on the mel scale of O'Shaughnessy from
  // 20 Hz to half the rate. Constants of the graph: training leaves them as they are.
  Value log_mel(const std::string& name, const Value& x, std::int64_t mels);
  // Weights: Kaiming normal by fan-out, or of deviation 1/sqrt(fan-in); bias 0.
  Value conv(const std::string& name, const Value& x, std::int64_t channels, const ConvOptions& options);
  // Over channels or over features. Kept as a node of its own so that training can use it.
  Value batch_norm(const std::string& name, const Value& x);
  Value conv_bn(const std::string& conv_name, const std::string& bn_name, const Value& x, std::int64_t channels,
                const ConvOptions& options);
  Value relu(const std::string& name, const Value& x);
  Value relu6(const std::string& name, const Value& x);
  // x below 0 is multiplied by 0.2.
  Value leaky_relu(const std::string& name, const Value& x);
  Value tanh(const std::string& name, const Value& x);
  // Every map of every image to mean 0 and deviation 1, then a learned scale and shift.
  Value instance_norm(const std::string& name, const Value& x);
  // Nearest neighbours, to maps of that size.
  Value enlarge(const std::string& name, const Value& x, std::int64_t height, std::int64_t width);
  // Channels of the one, then of the other.
  Value concat(const std::string& name, const Value& a, const Value& b);
  // Between 0 and `most`.
  Value clipped_relu(const std::string& name, const Value& x, double most);
  Value max_pool(const std::string& name, const Value& x, std::int64_t kernel, std::int64_t stride,
                 std::int64_t padding = 0);
  // [C, H, W] of [H, W]: a map of one channel.
  Value as_map(const std::string& name, const Value& x);
  // [C · H, length] of [C, H, length].
  Value rows_as_channels(const std::string& name, const Value& x);
  Value global_avg_pool(const std::string& name, const Value& x);
  Value flatten(const std::string& name, const Value& x);
  // Weights and bias: uniform in ±1/sqrt(fan-in).
  Value dense(const std::string& name, const Value& x, std::int64_t features);
  // The identity outside training.
  Value dropout(const std::string& name, const Value& x, double ratio);
  Value add(const std::string& name, const Value& a, const Value& b);
  // Every `stride`-th row and column.
  Value subsample(const std::string& name, const Value& x, std::int64_t stride);
  // Channels of zeros before and after.
  Value pad_channels(const std::string& name, const Value& x, std::int64_t before, std::int64_t after);

  // Layers from here on that have the name of an earlier one share its weights; their nodes' names end in `suffix`.
  void share_weights(const std::string& suffix);

  // The file's bytes. `logits` becomes the output; `spec` is recorded in the file.
  std::string finish(const Value& logits, const std::string& spec);
  // The same for a network that gives other things: every pair is a value and what it is called as an output.
  std::string finish_maps(const std::vector<std::pair<Value, std::string>>& outputs, const std::string& spec);

 private:
  struct Impl;

  void add_filled(const std::string& name, std::int64_t size, float value);
  void add_uniform(const std::string& name, const std::vector<std::int64_t>& dims, double bound);
  void add_normal(const std::string& name, const std::vector<std::int64_t>& dims, double deviation);
  std::size_t reserve_weights(const std::vector<std::int64_t>& dims);

  std::string architecture_;
  ArchitectureShape shape_;
  Rng rng_;
  std::int64_t weight_bytes_ = 0;
  std::unique_ptr<Impl> impl_;
};

}  // namespace galvani::zoo
