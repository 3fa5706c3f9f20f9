// A trained network, from ONNX or TorchScript, that can be run, looked into, differentiated and saved.
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
#include "galvani/model/task.h"

namespace galvani {

enum class TapKind { convolution, dense, activation };
const char* to_string(TapKind kind);

// A place in the network that can be observed and masked.
struct Tap {
  std::string name;  // "layer1.0.conv1", "fc", "conv1/relu"; "conv0" of a module that has but a number
  std::string path;  // that number, "0" or "0/relu", by which it can be selected, too; empty: as the name
  TapKind kind;
  std::string op;                   // "conv2d", "linear", "relu"
  std::string node;                 // the ONNX node's name; empty for TorchScript
  std::vector<std::int64_t> shape;  // of one input's value, such as [C, H, W]
  std::int64_t axis;                // of `shape`: where the neurons lie
  std::int64_t neurons() const { return shape[static_cast<std::size_t>(axis)]; }
  std::int64_t units() const;                    // scalars in all
  std::vector<std::int64_t> other_axes() const;  // of [B, ...shape], all but the batch and the neurons
};

// What the graph itself gives, for networks that were loaded for any output.
struct GraphOutput {
  std::string name;                 // "output0" and so on where the file has none
  std::vector<std::int64_t> shape;  // of one input's value: [3, 32, 32], or [] of a number
};

// What a classifier's file makes of its scores. Galvani works on the scores before it (logits).
enum class Head { logits, softmax, log_softmax, sigmoid };
const char* to_string(Head head);  // "logits", "softmax", "log-softmax", "sigmoid"

struct NetworkInfo {
  std::string path;
  std::string format;      // "onnx" or "torchscript"
  std::string sha256;      // of the file, and of external data that it names
  std::int64_t opset = 0;  // ONNX only
  std::string producer;
  std::vector<std::int64_t> input;  // [C, H, W], or [channels, length] of a sound
  // What the graph takes of an input in place of that: all its values in a row, [values], or [H, W]; empty: as it is.
  std::vector<std::int64_t> graph_input;
  std::string number = "float32";    // of its input: "float32", "float16" (all of it runs in float32) or "uint8"
  std::int64_t classes = 0;          // verdicts that there are; 0: no row of scores (Options::any_output)
  Question question;                 // what it is asked of each input
  std::vector<GraphOutput> outputs;  // with Options::any_output
  std::int64_t parameters = 0;       // trainable scalars
  std::int64_t random_layers = 0;    // dropout, which Request::random wakes, and noise
  Head head = Head::logits;
  bool logits_made = false;        // the scores before the head are not in the graph: they are made of its output
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

// A floating-point tensor that the graph reads.
struct NamedParameter {
  std::string name;                 // of the ONNX initialiser, or the path in the TorchScript module
  std::vector<std::int64_t> shape;  // may be []
  bool trainable;                   // a weight; otherwise a running statistic or a constant of the file
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
  at::Tensor logits;             // [B, classes]; of a task by reference without references the answers
  std::vector<at::Tensor> taps;  // full form, in the order requested
  std::int64_t first;            // index of row 0 in the request
  std::int64_t count;            // rows before the padding
};
// A scalar for every row, [B], or K of them, [B, K]. Called from several threads at once, with gradients recorded.
using Objective = std::function<at::Tensor(const Pass&)>;

// Multiplies a tap's value, neuron by neuron, before the rest of the network sees it.
struct Mask {
  int tap;
  at::Tensor factor;  // [neurons], or [N, neurons] for one mask per input
};

// Dropout works as in training; everything else stays in evaluation mode. What row i draws, for dropout and for noise
// that the graph itself adds, follows from the seed and `first_row + i` alone, not from threads or other rows.
struct RandomLayers {
  std::uint64_t seed = 0;
  std::int64_t first_row = 0;
  std::vector<std::int64_t> rows = {};  // numbers of all rows, where they do not follow each other; empty: they do

  std::int64_t number(std::int64_t i) const;
};

// With K objectives each gradient has a second axis of K: [N, K, ...] in place of [N, ...].
struct Outputs {
  at::Tensor logits;                       // [N, classes] float; of a task by reference only with references
  at::Tensor answers;                      // [N, outputs] float, of a task by reference
  std::vector<at::Tensor> taps;            // as requested
  std::vector<at::Tensor> layer_inputs;    // [N, ...] as requested; not with an objective
  at::Tensor objective;                    // [N] or [N, K]
  at::Tensor input_gradient;               // [N, ...input] per unit of the file: of 0..255, of 16 bits
  std::vector<at::Tensor> tap_gradients;   // [N, ...shape]
  std::vector<at::Tensor> mask_gradients;  // [N, neurons]
  std::vector<at::Tensor> reduced;         // what the reducer made of each micro-batch, joined along the first axis
};

// Called in the worker with the results of one micro-batch: rows [first, first + count) of the request, shapes as above
// with `count` in place of N. What it returns is joined in the order of the request: [count, ...] tensors give
// [N, ...], sums kept as [1, ...] give one row per micro-batch, to be added up in a fixed order. Called from several
// threads at once; REQUIRES as many tensors from every call.
using Reducer = std::function<std::vector<at::Tensor>(const Outputs& part, std::int64_t first)>;

struct Request {
  // Of a task by reference what each row is held against, [N, outputs] float; `answers`: nothing, for only they are
  // wanted. One of both must be given.
  at::Tensor references;
  bool answers = false;
  std::vector<int> taps;  // indices into Network::taps()
  TapForm form = TapForm::neurons;
  std::vector<int> layer_inputs;  // taps whose layer's input is wanted, in full; each must have a linear_layer
  std::vector<Mask> masks;
  // Masks act on what a layer says when it is finished: behind the batch norm, the activation function and the
  // arithmetic with constants that alone read it, so that a factor of zero switches a neuron off. A tap is still what
  // it was.
  bool masks_at_end = false;
  Objective objective;          // if set, its sum is differentiated
  std::int64_t objectives = 0;  // K, if the objective gives [B, K]: each is differentiated, after one forward pass
  bool input_gradient = false;
  bool tap_gradients = false;   // always full form
  bool mask_gradients = false;  // [N, neurons]
  bool alone = false;           // canonical form: every input in a batch of its own; the same bits in any context
  // If set, taps, layer inputs and gradients go to it alone and never exist for all rows at once.
  Reducer reducer;
  // Rows that belong together, such as the steps of a path: [0, group), [group, 2·group), ... A micro-batch holds whole
  // groups; a group larger than that is cut into pieces, which one worker takes in order. REQUIRES N % group == 0.
  std::int64_t group = 1;
  std::optional<RandomLayers> random;  // absent: dropout does nothing, noise is that of seed 0
  bool interruptible = false;          // Error(interrupted) between micro-batches once somebody asked to stop
};

// How Network::apply runs.
struct Application {
  bool alone = false;                  // canonical form, as in a request
  std::optional<RandomLayers> random;  // as in a request
  std::vector<std::size_t> outputs;    // places in info().outputs; the rest is not computed. Empty: all
};

class Network {
 public:
  struct Options {
    CardFlags flags;
    Execution execution;                   // exactly this, as a campaign recorded it; by default the fastest is found
    std::int64_t micro_batch = 0;          // only the rest is left to find
    bool unfused = false;                  // never choose fused layers
    std::vector<std::int64_t> data_shape;  // of the data at hand, for files that do not state their input
    bool any_output = false;  // encoders, generators and other graphs that give no class scores are loaded, too
    bool any_task = false;    // tasks by reference, too; whoever runs such a network gives references
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
  // globs separated by commas. Usage error if one matches nothing, but for "default" of a network without any.
  std::vector<int> select_taps(std::string_view spec) const;

  // The layer whose output is this tap; none for activations and operators other than a convolution or dense layer.
  std::optional<LinearLayer> linear_layer(int tap) const;
  // Those taps whose masks at the end act at places of their own: a layer, but not its activation function once more.
  std::vector<int> taps_with_own_end(const std::vector<int>& taps) const;

  // A graph that takes [N, values] or [N, H, W] takes images of that shape from now on, if their values are as many.
  // Nothing happens where somebody said what the images are, or where they do not fit.
  void read_as_images(const std::vector<std::int64_t>& shape);

  // Looks once more at what the outputs are, on the first inputs that the network is to run on: probabilities that
  // neither the graph nor noise gave away. Nothing happens where that is settled.
  void settle_head(const at::Tensor& inputs);
  bool head_settled() const;

  // Data say what is asked: a task by reference instead of one class. Error(bad_input) if the outputs cannot be its
  // answers, or the network was not loaded for any task. REQUIRES Task::classes.
  void ask(Task task);
  // Of a regression that nobody gave a tolerance. REQUIRES a positive number.
  void set_tolerance(double tolerance);

  // Measures once per architecture which micro-batch and layout run fastest, and remembers it in the cache folder.
  const Execution& execution();

  // images [N, C, H, W] uint8, or float on the 0..255 scale; sounds [N, channels, length] int16, or float on that
  // scale. Same bits for any number of workers. Error(bad_input) if the network gives no class scores.
  Outputs run(const at::Tensor& images, const Request& request);
  Outputs run(const at::Tensor& images) { return run(images, Request()); }

  // What the graph gives for each input, as the file has it (a final softmax included): [N, ...] each, in the order of
  // info().outputs, or of those asked for. REQUIRES Options::any_output. images as above.
  std::vector<at::Tensor> apply(const at::Tensor& images, const Application& how);
  std::vector<at::Tensor> apply(const at::Tensor& images) { return apply(images, Application()); }

  // All that can be read and set by name, weights first.
  std::vector<NamedParameter> parameters() const;
  at::Tensor parameter(const std::string& name) const;  // a copy, float
  // The network computes with the new values from now on. `value` float of the parameter's shape; rounded if the file
  // stores float16.
  void set_parameter(const std::string& name, const at::Tensor& value);

  // Says what the network computes with: the file's SHA-256 while its weights are as loaded, another hash while they
  // are not. What was learned from one network (a profile) is no good for another.
  std::string identity() const;
  // Goes up whenever the weights may have changed; cheap.
  std::uint64_t weights_version() const;

  // An independent network in the same state: weights, card, execution.
  std::unique_ptr<Network> clone() const;

  // Writes the weights and card back in the format the model came in; what is loaded from it gives the same bits.
  void save(const std::filesystem::path& path);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Network(std::unique_ptr<Impl> impl);
  static std::unique_ptr<Network> made(std::unique_ptr<Impl> impl, const std::string& label, const Options& options);
  std::unique_ptr<Impl> impl_;
};

// What the file would give for these scores, [N, classes] float: their softmax, or of sigmoids each for itself; of the
// two verdicts of a task by reference their softmax.
at::Tensor probabilities(const NetworkInfo& info, const at::Tensor& logits);

// Images [B, C, H, W] or sounds as Preprocess::apply takes them → the input of the graph, and a gradient with respect
// to that back to them.
at::Tensor to_graph(const NetworkInfo& info, const Preprocess& preprocess, const at::Tensor& inputs);
at::Tensor from_graph(const NetworkInfo& info, const Preprocess& preprocess, const at::Tensor& gradient);

// Throws Error(bad_input) unless the network gives a score for each of several classes, or what can be made into that.
void check_classes(const NetworkInfo& info);

// Throws Error(bad_input) unless inputs of that shape, without the batch, fit the network.
void check_fits(const Network& network, at::IntArrayRef shape, const std::string& data_name);
void check_fits(const Network& network, const at::Tensor& batch, const std::string& data_name);

}  // namespace galvani
