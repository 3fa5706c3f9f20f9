// CycleGAN (Zhu et al. 2017) as CAGFuzz trains it: P turns images of one domain into those of another, Q back again.
// The example of an image of the first domain is Q(P(x)), that of an image of the second P(Q(y)).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"
#include "galvani/data/dataset.h"
#include "galvani/generate/examples.h"
#include "galvani/model/network.h"

namespace galvani {

// Rows of one data set, or all of two.
struct DomainRows {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> second;
};
using DomainRegistry = Registry<DomainRows, const Dataset&, const Rng&>;
const DomainRegistry& domain_splits();  // halves, pair, clusters

struct CycleOptions {
  std::string translator = "resnet";  // a spec of translators()
  std::int64_t critic_width = 16;
  std::int64_t epochs = 8;
  std::int64_t epoch_images = 2560;  // of each domain
  std::int64_t batch = 16;
  std::int64_t micro_batch = 8;
  std::string optimizer = "adam:lr=0.0005,beta1=0.5";
  std::string schedule = "linear";
  std::string adversarial = "squares";  // or "log"
  double cycle = 10;                    // weight of |Q(P(x)) - x|
  double identity = 1;                  // weight of |Q(x) - x|
  std::int64_t replay = 50;             // made images of each domain that critics may be shown again; 0: none
  std::uint64_t seed = 0;
  std::filesystem::path checkpoint;  // empty: none. Stays when training ends
};

// Means over an epoch, and what was measured at its end.
struct CycleEpoch {
  std::int64_t epoch = 0;  // from 1
  double rate = 0;
  double adversarial = 0;  // of both translators, as the critics see them
  double cycle = 0;        // |Q(P(x)) - x| + |P(Q(y)) - y|, from 0 to 4
  double identity = 0;     // |Q(x) - x| + |P(y) - y|
  double critics = 0;      // loss of both critics
  double seconds = 0;
  ExampleFigures figures;  // of `looked_at`
  bool past = false;       // it was told before the training was interrupted
};

struct CycleResult {
  std::unique_ptr<Network> network;  // both ways, as ImageToImage takes it; its card says what it was trained on
  std::vector<CycleEpoch> epochs;
  double told_apart = 0;  // share of the images to train on (some thousands) whose domain is told right
  bool resumed = false;
};

// Called at the end of an epoch; `network` is the one that would be given back now.
using CycleListener = std::function<void(const CycleEpoch& epoch, Network& network)>;

// Images of both domains, and those looked at after every epoch, are of one size. Same seed, same weights, whatever the
// number of threads, interrupted or not.
CycleResult train_cycle(const Dataset& first, const Dataset& second, const Dataset& looked_at,
                        const CycleOptions& options, const CycleListener& listener);

}  // namespace galvani
