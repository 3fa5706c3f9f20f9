// A trained classifier, from ONNX or TorchScript, that can be run, looked into, differentiated and saved.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "galvani/model/card.h"

namespace galvani {

enum class TapKind { convolution, dense, activation };
const char* to_string(TapKind kind);

// A place in the network that can be observed and masked.
struct Tap {
  std::string name;  // "layer1.0.conv1", "fc", "conv1/relu"
  TapKind kind;
  std::string op;                   // "conv2d", "linear", "relu"
  std::string node;                 // the ONNX node's name; empty for TorchScript
  std::vector<std::int64_t> shape;  // of one input's value, such as [C, H, W]
  std::int64_t axis;                // of `shape`: where the neurons lie
  std::int64_t neurons() const { return shape[static_cast<std::size_t>(axis)]; }
  std::int64_t units() const;                    // scalars in all
  std::vector<std::int64_t> other_axes() const;  // of [B, ...shape], all but the batch and the neurons
};

struct NetworkInfo {
  std::string path;
  std::string format;      // "onnx" or "torchscript"
  std::string sha256;      // of the file, and of external data that it names
  std::int64_t opset = 0;  // ONNX only
  std::string producer;
  std::vector<std::int64_t> input;  // [C, H, W]
  std::int64_t classes = 0;
  std::int64_t parameters = 0;     // trainable scalars
  bool softmax = false;            // the file ends in a softmax; logits are taken before it
  std::int64_t fixed_batch = 0;    // the graph takes only this batch size; 0: any
  std::vector<std::string> notes;  // what a user should know, such as values that cannot be tapped
};

// A tap's layer as arithmetic: what it does to its input, but for the bias. Two-dimensional convolutions and dense
// layers.
struct LinearLayer {
  bool dense = false;
  at::Tensor weight;  // dense: [neurons, features]; convolution: [neurons, features / groups, height, width]
  std::vector<std::int64_t> stride, padding, dilation;  // convolution: two each
  std::int64_t groups = 1;
  std::int64_t features() const { return weight.size(1) * groups; }
};

// One operator of the graph, for people to read.
struct Layer {
  std::string op;
  std::string name;
  std::vector<std::int64_t> output;  // [C, H, W]; empty: not a tensor
  std::int64_t parameters = 0;
};

// How forward passes are cut into pieces: what gives the bits of a result, besides the input itself.
struct Execution {
  std::int64_t micro_batch = 0;  // inputs a kernel call sees; 0: choose by measurement
  bool channels_last = false;    // memory layout of activations
  bool fused = false;            // layers run together with what follows them, wherever no gradient is wanted
};

enum class TapForm {
  neurons,  // [N, neurons]: the mean over space or time
  full,     // [N, ...shape]
};

// One micro-batch on its way through the network, as an objective sees it. B counts padding too.
struct Pass {
  at::Tensor logits;             // [B, classes]
  std::vector<at::Tensor> taps;  // full form, in the order requested
  std::int64_t first;            // index of row 0 in the request
  std::int64_t count;            // rows before the padding
};
// A scalar for every row: [B]. Called from several threads at once, with gradients recorded.
using Objective = std::function<at::Tensor(const Pass&)>;

// Multiplies a tap's value, neuron by neuron, before the rest of the network sees it.
struct Mask {
  int tap;
  at::Tensor factor;  // [neurons], or [N, neurons] for one mask per input
};

struct Request {
  std::vector<int> taps;  // indices into Network::taps()
  TapForm form = TapForm::neurons;
  std::vector<int> layer_inputs;  // taps whose layer's input is wanted, in full; each must have a linear_layer
  std::vector<Mask> masks;
  Objective objective;  // if set, its sum is differentiated
  bool input_gradient = false;
  bool tap_gradients = false;   // always full form
  bool mask_gradients = false;  // [N, neurons]
  bool alone = false;           // canonical form: every input in a batch of its own; the same bits in any context
};

struct Outputs {
  at::Tensor logits;                       // [N, classes] float
  std::vector<at::Tensor> taps;            // as requested
  std::vector<at::Tensor> layer_inputs;    // [N, ...] as requested; not with an objective
  at::Tensor objective;                    // [N]
  at::Tensor input_gradient;               // [N, C, H, W] per pixel unit (0..255)
  std::vector<at::Tensor> tap_gradients;   // [N, ...shape]
  std::vector<at::Tensor> mask_gradients;  // [N, neurons]
};

class Network {
 public:
  struct Options {
    CardFlags flags;
    Execution execution;                   // exactly this, as a campaign recorded it; by default the fastest is found
    std::int64_t micro_batch = 0;          // only the rest is left to find
    bool fused = true;                     // false: never choose fused layers
    std::vector<std::int64_t> data_shape;  // [C, H, W] of the data at hand, for files that do not state their input
  };

  // Loads by content: ONNX or TorchScript. A `<path>.toml` beside the file is read too.
  static std::unique_ptr<Network> load(const std::filesystem::path& path, const Options& options);
  static std::unique_ptr<Network> load(const std::filesystem::path& path) { return load(path, Options()); }
  // An ONNX model in memory, as the zoo makes them; `label` stands for the file name.
  static std::unique_ptr<Network> from_onnx(std::string bytes, const std::string& label, const Options& options);
  ~Network();

  const NetworkInfo& info() const;
  const ModelCard& card() const;
  void set_card(const ModelCard& card);
  const std::vector<Tap>& taps() const;  // all that exist, in graph order
  std::vector<Layer> layers() const;

  // "default" (convolutions and dense layers before their activation), "relu" (activations), "all", or names and
  // globs separated by commas. Usage error if one matches nothing.
  std::vector<int> select_taps(std::string_view spec) const;

  // The layer whose output is this tap; none for activations and operators other than a convolution or dense layer.
  std::optional<LinearLayer> linear_layer(int tap) const;

  // Measures once per architecture which micro-batch and layout run fastest, and remembers it in the cache folder.
  const Execution& execution();

  // images [N, C, H, W] uint8, or float on the 0..255 scale. Same bits for any number of workers.
  Outputs run(const at::Tensor& images, const Request& request);
  Outputs run(const at::Tensor& images) { return run(images, Request()); }

  // Writes the weights and card back in the format the model came in; what is loaded from it gives the same bits.
  void save(const std::filesystem::path& path);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Network(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Throws Error(bad_input) unless images of that data fit the network.
void check_fits(const Network& network, const at::Tensor& images, const std::string& data_name);

}  // namespace galvani
