// Networks for tests of generators.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <memory>

#include "galvani/model/network.h"
#include "galvani/model/translator.h"
#include "galvani/model/zoo.h"

namespace galvani::testing {

// A LeNet-1 with random weights.
inline std::unique_ptr<Network> random_lenet(std::uint64_t seed = 1, std::int64_t classes = 10) {
  Rng rng(seed);
  Network::Options options;
  options.execution = {16, false};
  return Network::from_onnx(architectures().create(Spec::parse("lenet1"), {1, 28, 28, classes}, rng), "lenet1",
                            options);
}

// Writes a network whose weights are off by so large a share of their own size: it agrees on most inputs.
inline void save_relative(const Network& network, double share, const std::filesystem::path& path) {
  std::unique_ptr<Network> other = network.clone();
  Rng rng(3);
  for (const NamedParameter& parameter : other->parameters()) {
    if (!parameter.trainable) continue;
    at::Tensor value = other->parameter(parameter.name).contiguous();
    at::Tensor noise = at::empty_like(value);
    rng.fill_normal(noise.data_ptr<float>(), static_cast<std::size_t>(noise.numel()));
    other->set_parameter(parameter.name, value * (1 + share * noise));
  }
  other->save(path);
}

// Writes a network with random weights that makes examples of 28x28 images.
inline void save_example_maker(const std::filesystem::path& path) {
  TranslatorRequest request{{1, 28, 28, 2}, {"p.", "q."}, Rng(2)};
  Network::Options options;
  options.any_output = true;
  options.execution = {16, false};
  Network::from_onnx(translators().create(Spec::parse("resnet:width=4,blocks=1"), request), "aeg", options)->save(path);
}

}  // namespace galvani::testing
