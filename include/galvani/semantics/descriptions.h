// What the neurons of a model see, in words: the file that `galvani describe` writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "galvani/semantics/describer.h"
#include "galvani/semantics/exemplars.h"

namespace galvani {

struct DescribedNeuron : NeuronWords {
  float threshold = 0;                                    // above which it is active
  double above = 0;                                       // the share of its values that are
  std::vector<std::pair<std::int64_t, float>> exemplars;  // row of the data, largest value in it
};

struct DescribedLayer {
  std::string tap;
  std::vector<DescribedNeuron> neurons;
};

// A threshold of similarity that `galvani calibrate` found, and for what.
struct Calibration {
  std::string paths;      // what similarity was measured: the spec of the paths
  std::string data;       // on whose mutants
  std::string generator;  // that made them
  std::int64_t inputs = 0;
  std::int64_t mutants = 0;
  double quantile = 0.25;
  double tau = 0;
  double quartiles[3] = {0, 0, 0};
  double below = 0;       // the share of the mutants whose similarity is less than tau
  double same_words = 0;  // whose words are those of the original
};

struct Descriptions {
  std::string model;      // Network::identity()
  std::string describer;  // its spec
  std::string data;       // what it looked at
  std::int64_t inputs = 0;
  std::uint64_t seed = 0;
  ExemplarOptions options;
  std::vector<DescribedLayer> layers;
  std::vector<Calibration> calibrations;

  std::int64_t neurons() const;
  std::string to_json() const;
  void save(const std::filesystem::path& path) const;
  // Error(bad_input) if it is damaged or no such file, or describes another model or layers that it does not have.
  static Descriptions load(const std::filesystem::path& path, const Network& network);
  // SHA-256 of what is said of the neurons; calibrations do not count.
  std::string sha256() const;
  // The places of the layers in the network.
  std::vector<int> taps(const Network& network) const;
};

// Where the last descriptions of a model are remembered, in the cache.
std::filesystem::path last_descriptions(const Network& network);

// Finds words for the exemplars' neurons.
Descriptions describe(Describer& describer, const DescribeTask& task);

}  // namespace galvani
