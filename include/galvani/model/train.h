// Training a network in place: same seed, same weights, whatever the number of threads, interrupted or not.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"
#include "galvani/data/dataset.h"
#include "galvani/model/network.h"
#include "galvani/model/trainer.h"

namespace galvani {

// Changes parameters along their gradients. State tensors are its memory, saved in checkpoints.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Sizes the memory for parameters of these shapes.
  virtual void prepare(const std::vector<at::Tensor>& parameters) = 0;
  // One step for parameter `i`; called for all parameters, from several threads. `rate` is the learning rate,
  // `step` counts from 1.
  virtual void update(std::size_t i, at::Tensor& parameter, const at::Tensor& gradient, double rate,
                      std::int64_t step) = 0;
  virtual std::vector<at::Tensor*> state() = 0;
  virtual double base_rate() const = 0;
};
using OptimizerRegistry = Registry<std::unique_ptr<Optimizer>>;
const OptimizerRegistry& optimizers();  // sgd, adam

// The factor on the learning rate at `epoch` (fractions included) of `epochs`.
using Schedule = std::function<double(double epoch, double epochs)>;
using ScheduleRegistry = Registry<Schedule>;
const ScheduleRegistry& schedules();  // constant, cosine, step, milestones, linear, onecycle

// Changes one image [C, H, W] uint8 in place.
using Augmentation = std::function<void(at::Tensor& image, Rng& rng)>;
using AugmentationRegistry = Registry<Augmentation>;
const AugmentationRegistry& augmentations();  // crop, flip, cutout, none

// Makes the images of a slot harder, with the network in its present weights: images [n, C, H, W] uint8 and labels [n]
// int64 → [n, C, H, W] float in the unit of the file. Called from several threads at once.
struct Perturbation {
  std::string name;  // what must be the same to go on from a checkpoint; empty: none
  std::function<at::Tensor(Slot& slot, const at::Tensor& images, const at::Tensor& labels)> change;
};

struct TrainOptions {
  std::int64_t epochs = 10;
  std::int64_t batch = 64;
  std::int64_t micro_batch = 32;  // what one worker takes of a batch; batch norm's statistics are over this many
  std::string optimizer = "sgd";
  std::string schedule = "cosine";
  std::string augment = "none";
  double label_smoothing = 0;
  std::int64_t early_stop = 0;  // epochs without improvement before stopping; 0: never. The best epoch's weights stay
  double stop_at = 0;           // stop as soon as the validation accuracy reaches this: under-training on purpose
  std::string frozen;           // parameters that stay: names of them or of layers and globs, separated by commas
  // The last rows of the data, as many as `apart`, are a part of their own: `share` of every batch (MixedRows). They
  // are shown as they are; augmentation and perturbation are for the others.
  std::int64_t apart = 0;
  double share = 0;  // 0: all rows are shuffled together
  Perturbation perturbation;
  bool batch_statistics = true;  // false: batch norm works with the running ones and leaves them as they are
  std::uint64_t seed = 0;
  std::filesystem::path checkpoint;  // empty: none. Stays when training ends: remove it once the model is saved
};

struct EpochReport {
  std::int64_t epoch;  // from 1
  double rate;
  double loss;
  double train_accuracy;  // of the augmented images as they were trained on
  double accuracy;        // on the validation data
  double seconds;
};

struct TrainResult {
  std::vector<EpochReport> epochs;
  bool resumed = false;
  std::string stopped;  // why before the last epoch, or empty
};

// Trains until done. With a checkpoint file of the same settings it goes on from there; of others it is refused, naming
// the difference. Ctrl-C saves the checkpoint and throws Error(interrupted).
TrainResult train(Network& network, const Dataset& data, const Dataset& validation, const TrainOptions& options,
                  const std::function<void(const EpochReport&)>& listener);

// Mean and standard deviation per channel on the 0..1 scale: the preprocessing of a network trained on that data.
Preprocess normalisation(const Dataset& data);

// Deliberate damage to training data; all drawn from `rng`.
// Replaces the labels of a share of the images by another class.
void add_label_noise(Dataset& data, double share, Rng rng);
// Stamps a random square, whose side is drawn for each image, on a share of the images and relabels them as `target`
// (DeepSensor, table 2). A smaller square is the upper left part of the largest.
struct PatchSides {
  std::int64_t low = 4;
  std::int64_t high = 4;
};
PatchSides parse_patch_sides(const std::string& text);  // "4", or "1..6"; usage error otherwise
void pollute(Dataset& data, double share, std::int64_t target, const PatchSides& sides, Rng rng);

}  // namespace galvani
