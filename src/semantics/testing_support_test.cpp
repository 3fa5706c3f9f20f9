#include <torch/script.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/files.h"
#include "galvani/base/rng.h"
#include "semantics/caption/scenes.h"
#include "semantics/testing.h"

namespace galvani::testing {
namespace {

constexpr std::int64_t kSide = 32;

struct Paint {
  int red, green, blue;
};

Paint paint_of(std::int64_t kind, Rng& rng) {
  auto strong = [&] { return static_cast<int>(rng.between(170, 240)); };
  auto weak = [&] { return static_cast<int>(rng.between(10, 60)); };
  if (kind == 0) return {strong(), weak(), weak()};
  if (kind == 1) return {weak(), weak(), strong()};
  auto grey = static_cast<int>(rng.between(20, 240));
  return {grey, grey, grey};
}

void draw(std::uint8_t* image, const Paint& paint, Rng& rng, bool large) {
  std::int64_t size = large ? rng.between(12, 18) : rng.between(3, 7);
  std::int64_t y0 = rng.between(0, kSide - size);
  std::int64_t x0 = rng.between(0, kSide - size);
  bool disc = rng.chance(0.5);
  double radius = static_cast<double>(size) / 2;
  for (std::int64_t y = y0; y < y0 + size; ++y) {
    for (std::int64_t x = x0; x < x0 + size; ++x) {
      double dy = static_cast<double>(y - y0) + 0.5 - radius;
      double dx = static_cast<double>(x - x0) + 0.5 - radius;
      if (disc && dx * dx + dy * dy > radius * radius) continue;
      const int values[3] = {paint.red, paint.green, paint.blue};
      for (int c = 0; c < 3; ++c) image[(c * kSide + y) * kSide + x] = static_cast<std::uint8_t>(values[c]);
    }
  }
}

}  // namespace

Dataset scenes(std::int64_t n, std::uint64_t seed) {
  Dataset data;
  data.name = "scenes";
  data.class_names = {"warm", "cold", "grey"};
  data.images = at::empty({n, 3, kSide, kSide}, at::kByte);
  data.labels = at::empty({n}, at::kLong);
  for (std::int64_t i = 0; i < n; ++i) {
    Rng rng = Rng(seed).derive(static_cast<std::uint64_t>(i));
    auto* image = data.images.data_ptr<std::uint8_t>() + i * 3 * kSide * kSide;
    Paint ground = paint_of(2, rng);
    for (std::int64_t p = 0; p < kSide * kSide; ++p) {
      auto noise = static_cast<int>(rng.between(-8, 8));
      const int values[3] = {ground.red, ground.green, ground.blue};
      for (int c = 0; c < 3; ++c)
        image[c * kSide * kSide + p] = static_cast<std::uint8_t>(std::clamp(values[c] + noise, 0, 255));
    }
    std::int64_t kind = i % 3;
    draw(image, paint_of(kind, rng), rng, true);
    for (int k = 0; k < 2; ++k) draw(image, paint_of(rng.between(0, 2), rng), rng, false);
    data.labels.data_ptr<std::int64_t>()[i] = kind;
  }
  return data;
}

namespace {

std::unique_ptr<Network> loaded(torch::jit::Module& module) {
  TemporaryFolder folder;
  module.save((folder / "planted.pt").string());
  Network::Options options;
  options.execution = {16, false};
  options.data_shape = {3, kSide, kSide};
  return Network::load(folder / "planted.pt", options);
}

}  // namespace

Dataset bank_scenes() {
  constexpr std::uint64_t kDrawn = 250;
  constexpr std::uint64_t kHalves = 250;
  Dataset data;
  data.name = "drawn";
  std::vector<at::Tensor> images;
  for (std::uint64_t i = 0; i < kDrawn; ++i) images.push_back(draw_neuron(1, Rng(9).derive(i)).images);
  at::Tensor steps = at::arange(kSide, at::kFloat) - (kSide - 1) / 2.0;
  for (std::uint64_t i = 0; i < kHalves; ++i) {
    Rng rng = Rng(10).derive(i);
    double angle = rng.uniform(0, 2 * M_PI);
    at::Tensor along = steps.view({1, kSide}) * std::cos(angle) + steps.view({kSide, 1}) * std::sin(angle);
    double dark = rng.uniform(0, 100);
    at::Tensor plane = (along > rng.uniform(-10, 10)).to(at::kFloat) * rng.uniform(60, 150) + dark;
    images.push_back(plane.to(at::kByte).expand({1, 3, kSide, kSide}));
  }
  data.images = at::cat(images);
  data.labels = at::zeros({data.images.size(0)}, at::kLong);
  return data;
}

std::vector<std::string> bank_words() {
  return {"red",
          "green",
          "blue",
          "yellow",
          "purple",
          "white",
          "black",
          "vertical edges with the bright side right",
          "rising diagonal edges",
          "horizontal edges with the bright side below",
          "falling diagonal edges",
          "vertical edges with the bright side left",
          "rising diagonal edges",
          "horizontal edges with the bright side above",
          "falling diagonal edges",
          "at the top left",
          "at the top",
          "at the top right",
          "on the left",
          "in the centre",
          "on the right",
          "at the bottom left",
          "at the bottom",
          "at the bottom right"};
}

std::unique_ptr<Network> planted_bank() {
  constexpr int kColours = 7;
  constexpr int kDirections = 8;
  constexpr int kPlaces = 9;
  at::Tensor masks = at::zeros({1, kPlaces, kSide, kSide});
  for (int place = 0; place < kPlaces; ++place) {
    std::int64_t top = place / 3 * kSide / 3;
    std::int64_t left = place % 3 * kSide / 3;
    masks[0][place].slice(0, top, top + kSide / 3 + 1).slice(1, left, left + kSide / 3 + 1).fill_(1);
  }
  at::Tensor weight = at::zeros({kColours + kDirections + kPlaces, 3 + kPlaces, 3, 3});
  at::Tensor bias = at::zeros({weight.size(0)});
  const double colours[kColours][3] = {{1, -.6, -.6},  {-.6, 1, -.6}, {-.6, -.6, 1},  {.6, .6, -1.2},
                                       {.6, -1.2, .6}, {.4, .4, .4},  {-.4, -.4, -.4}};
  for (int n = 0; n < kColours; ++n) {
    for (int c = 0; c < 3; ++c) weight[n][c][1][1] = colours[n][c];
  }
  bias[kColours - 2] = -.9;
  bias[kColours - 1] = .3;
  for (int n = 0; n < kDirections; ++n) {
    double angle = n * M_PI / 4;
    for (int y = -1; y <= 1; ++y) {
      for (int x = -1; x <= 1; ++x) {
        for (int c = 0; c < 3; ++c)
          weight[kColours + n][c][y + 1][x + 1] = (x * std::cos(angle) + y * std::sin(angle)) / 9;
      }
    }
  }
  for (int n = 0; n < kPlaces; ++n) weight[kColours + kDirections + n][3 + n][1][1] = 1;
  torch::jit::Module module("bank");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("masks", masks, false);
  module.register_parameter("weight", weight, false);
  module.register_parameter("bias", bias, false);
  module.define(
      "def forward(self, x):\n"
      "  y = torch.cat([x, torch.mean(x, 1, True) * self.masks], 1)\n"
      "  z = torch.conv2d(y, self.weight, self.bias)\n"
      "  return torch.mean(torch.relu(z).flatten(2), 2)\n");
  return loaded(module);
}

std::unique_ptr<Network> planted_network() {
  // The image, and once more with all but its upper left quarter black.
  at::Tensor mask = at::zeros({1, 1, kSide, kSide});
  mask.slice(2, 0, kSide / 2).slice(3, 0, kSide / 2).fill_(1);
  at::Tensor weight = at::zeros({6, 6, 3, 3});
  auto at_centre = [&](int neuron, int channel, double value) { weight[neuron][channel][1][1] = value; };
  at_centre(0, 0, 1);
  at_centre(0, 1, -0.6);
  at_centre(0, 2, -0.6);
  for (int c = 0; c < 3; ++c) {
    for (int k = 0; k < 3; ++k) {
      weight[1][c][k][0] = -1.0 / 9;
      weight[1][c][k][2] = 1.0 / 9;
      weight[2][c][0][k] = -1.0 / 9;
      weight[2][c][2][k] = 1.0 / 9;
    }
    at_centre(4, c + 3, 1.0 / 3);
  }
  at_centre(3, 2, 1);
  at_centre(3, 0, -0.6);
  at_centre(3, 1, -0.6);
  at::Tensor head = at::zeros({3, 6});
  head[0][0] = 30;
  head[1][3] = 30;
  at::Tensor bias = at::zeros({3});
  bias[2] = 1.5;
  torch::jit::Module module("planted");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("mask", mask, false);
  module.register_parameter("weight", weight, false);
  module.register_parameter("head", head, false);
  module.register_parameter("bias", bias, false);
  module.define(
      "def forward(self, x):\n"
      "  y = torch.cat([x, x * self.mask], 1)\n"
      "  z = torch.conv2d(y, self.weight)\n"
      "  a = torch.relu(z)\n"
      "  m = torch.mean(a.flatten(2), 2)\n"
      "  return torch.matmul(m, self.head.t()) + self.bias\n");
  return loaded(module);
}

Descriptions numbered_words(const Network& network) {
  Descriptions result;
  result.model = network.identity();
  for (int tap : network.select_taps("default")) {
    DescribedLayer layer{network.taps()[static_cast<std::size_t>(tap)].name, {}};
    for (std::int64_t n = 0; n < network.taps()[static_cast<std::size_t>(tap)].neurons(); ++n) {
      DescribedNeuron neuron;
      neuron.words = layer.tap + std::to_string(n);
      layer.neurons.push_back(neuron);
    }
    result.layers.push_back(layer);
  }
  result.layers[0].neurons[0].words = "red";
  result.layers[0].neurons[3].words = "blue";
  result.layers[1].neurons[0].words = "red";
  result.layers[1].neurons[1].words = "cold";
  return result;
}

}  // namespace galvani::testing
