// What neurons look at: of every neuron of some layers the inputs that activate it most, where in them, and the value
// that counts as active (NSGen 4.2.1, after MILAN and network dissection). One pass over the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/network.h"

namespace galvani {

struct ExemplarOptions {
  std::int64_t count = 15;  // inputs a neuron
  double quantile = 0.99;   // of a neuron's values everywhere in all inputs: larger ones are active
};

// Values of a neuron lie on a map: the positions of a convolution's output, one position of a dense layer's.
struct ExemplarLayer {
  std::string tap;
  TapKind kind = TapKind::convolution;
  std::int64_t neurons = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;
  bool spatial() const { return height * width > 1; }

  // Of each neuron:
  std::vector<float> threshold;  // not above the true quantile by more than 2^-8 of it
  std::vector<double> above;     // the share of values that are larger, exactly
  std::vector<float> least;
  std::vector<float> largest;
  // Of each neuron and place, the most activating input first; of equal ones the first in the data.
  std::vector<std::int64_t> rows;  // of the data; -1: there were fewer inputs
  std::vector<float> peaks;        // the largest value in that input
  at::Tensor maps;                 // [neurons, count, height, width] half

  bool dead(std::int64_t neuron) const {
    return least[static_cast<std::size_t>(neuron)] == largest[static_cast<std::size_t>(neuron)];
  }
};

struct Exemplars {
  std::string model;  // Network::identity()
  std::string data;   // the spec
  SampleType type;
  std::int64_t inputs = 0;  // that were looked at
  std::int64_t hurt = 0;    // of them, with values that are not finite, which do not count
  ExemplarOptions options;
  std::vector<ExemplarLayer> layers;
  std::vector<std::int64_t> pictured;  // rows of the data that are an exemplar of any neuron, ascending
  at::Tensor images;                   // [pictured, ...] as files hold them

  // REQUIRES that the row is pictured.
  at::Tensor image(std::int64_t row) const;
  // Where a neuron is active in one of its exemplars: [height, width] bool of the image's own size, by a bilinear map.
  // Images only, and layers with a map.
  at::Tensor mask(std::size_t layer, std::int64_t neuron, std::int64_t place) const;

  void save(const std::filesystem::path& path) const;
  // Error(bad_input) if it is damaged, or of another model.
  static Exemplars load(const std::filesystem::path& path, const Network& network);
};

// With a progress bar; Ctrl-C is honoured. `taps` are indices into Network::taps().
Exemplars find_exemplars(Network& network, const std::vector<int>& taps, const DataView& data,
                         const ExemplarOptions& options = {});

// The values of a tap, [N, ...shape], with the neurons first: [N, neurons, positions], contiguous.
at::Tensor by_neuron(const at::Tensor& values, const Tap& tap);
// Height and width of a tap's map.
std::pair<std::int64_t, std::int64_t> map_size(const Tap& tap);

// The layers that descriptions and decision paths are made of, as the user says it: a number (so many convolutions,
// evenly from the first to the last; of a network without any, dense layers before the last), or taps by name as
// Network::select_taps takes them.
std::vector<int> choose_layers(const Network& network, const std::string& layers);

}  // namespace galvani
