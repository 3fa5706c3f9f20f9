// The front end of networks of sounds.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "galvani/base/error.h"
#include "galvani/model/network.h"
#include "galvani/model/zoo.h"

namespace galvani {
namespace {

constexpr double kTurn = 2 * 3.14159265358979323846;

std::unique_ptr<Network> fresh(const std::string& spec, const ArchitectureShape& shape) {
  Rng rng(3);
  Network::Options options;
  options.micro_batch = 2;
  return Network::from_onnx(architectures().create(Spec::parse(spec), shape, rng), spec, options);
}

at::Tensor tone(double hz, double loud, std::int64_t length = 16000) {
  at::Tensor t = at::arange(length, at::kDouble) * (kTurn * hz / 16000);
  return (t.sin() * loud).round().to(at::kShort).view({1, 1, length});
}

// [mels, frames]: what the first convolution of the residual network sees. A fresh batch norm divides by √(1 + 1e-5).
at::Tensor log_mel(Network& network, const at::Tensor& sound) {
  Request request;
  request.layer_inputs = network.select_taps("conv1");
  return network.run(sound, request).layer_inputs.at(0)[0][0] * std::sqrt(1 + 1e-5);
}

// Where tones and silence must show by the formulas: a transform of 512 under a periodic Hann window of 400, triangles
// between 20 and 8000 Hz on the scale 2595·log10(1 + f/700).
TEST(SoundZoo, TheFrontEndIsALogMelSpectrogram) {
  std::unique_ptr<Network> network = fresh("resnet34-sound:mels=40", {1, 0, 0, 10, 16000, 16000});
  for (double hz : {300.0, 1000.0, 3000.0, 6000.0}) {
    at::Tensor seen = log_mel(*network, tone(hz, 8192));
    EXPECT_EQ(seen.sizes().vec(), (std::vector<std::int64_t>{40, 98}));
    // The loudest band is the one whose top is nearest to the tone.
    double mel = 2595 * std::log10(1 + hz / 700);
    double low = 2595 * std::log10(1 + 20.0 / 700), high = 2595 * std::log10(1 + 8000.0 / 700);
    double place = (mel - low) / ((high - low) / 41) - 1;
    EXPECT_NEAR(static_cast<double>(seen.mean(1).argmax().item<std::int64_t>()), place, 0.75) << hz;
  }
  // Twice as loud is four times the power.
  at::Tensor soft = log_mel(*network, tone(1000, 4000)), loud = log_mel(*network, tone(1000, 8000));
  auto band = soft.mean(1).argmax().item<std::int64_t>();
  EXPECT_NEAR((loud - soft)[band].mean().item<double>(), std::log(4), 1e-3);
  // The window's sum of squares and the transform: a tone's power in its bin is (A/2 · Σ hann)² = (A/2 · 200)².
  at::Tensor at_bin = log_mel(*network, tone(1000, 16384));  // 1000 Hz is bin 32 of 512 exactly
  double peak = std::log(std::pow(0.5 / 2 * 200, 2));
  auto top = at_bin.amax().item<double>();
  EXPECT_GT(top, peak - 0.3);
  EXPECT_LT(top, peak + 0.8);  // neighbouring bins add up to as much again
  // Silence is the floor.
  EXPECT_NEAR(log_mel(*network, at::zeros({1, 1, 16000}, at::kShort)).max().item<double>(), std::log(1e-6), 1e-4);
}

TEST(SoundZoo, TheFrontEndHasNoNeuronsAndIsNotTrained) {
  std::unique_ptr<Network> network = fresh("audionet", {1, 0, 0, 10, 16000, 16000});
  EXPECT_EQ(network->info().parameters, 210634);
  for (const Tap& tap : network->taps()) EXPECT_EQ(tap.name.find("logmel"), std::string::npos) << tap.name;
  EXPECT_EQ(network->select_taps("default").size(), 8U);
}

TEST(SoundZoo, GradientsReachTheSamples) {
  for (const char* spec : {"audionet", "resnet34-sound:width=4", "deep-speaker:width=4"}) {
    std::unique_ptr<Network> network = fresh(spec, {1, 0, 0, 3, 8000, 8000});
    // Noise, for a band without sound has a logarithm that no step is small for.
    at::Tensor sound = at::randint(-3000, 3000, {1, 1, 8000}, at::detail::createCPUGenerator(3), at::kShort);
    at::Tensor direction = at::randint(0, 2, {1, 1, 8000}, at::detail::createCPUGenerator(4), at::kFloat) * 2 - 1;
    Request request;
    request.objective = [](const Pass& pass) { return pass.logits.select(1, 0); };
    request.input_gradient = true;
    at::Tensor gradient = network->run(sound, request).input_gradient;
    // Half of the way along the gradient's signs, so that the derivative is not lost among roundings.
    direction = at::where(direction > 0, gradient.sign(), direction);
    constexpr double kStep = 0.5;
    auto score = [&](double step) {
      return network->run(sound.to(at::kFloat) + direction * step).logits[0][0].item<double>();
    };
    auto expected = (gradient * direction).sum().item<double>();
    double found = (score(kStep) - score(-kStep)) / (2 * kStep);
    EXPECT_GT(gradient.abs().sum().item<double>(), 0) << spec;
    EXPECT_NEAR(found, expected, 0.1 * std::abs(expected)) << spec;
  }
}

TEST(SoundZoo, OtherInputsAreRefused) {
  Rng rng(1);
  auto refusal = [&](const std::string& spec, const ArchitectureShape& shape) -> std::string {
    try {
      architectures().create(Spec::parse(spec), shape, rng);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal("audionet", {1, 28, 28, 10}).find("is a network of sounds"), std::string::npos);
  EXPECT_NE(refusal("audionet", {2, 0, 0, 10, 16000, 16000}).find("one channel"), std::string::npos);
  EXPECT_NE(refusal("audionet", {1, 0, 0, 10, 1000, 16000}).find("at least 6720 samples"), std::string::npos);
  for (const char* spec : {"lenet5", "vgg16", "resnet20", "resnet18", "mobilenet_v2", "sadl1"})
    EXPECT_NE(refusal(spec, {1, 0, 0, 10, 16000, 16000}).find("is a network of images"), std::string::npos) << spec;
}

}  // namespace
}  // namespace galvani
