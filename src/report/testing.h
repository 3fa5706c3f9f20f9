// A small campaign for tests.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "galvani/fuzz/campaign.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"

namespace galvani::testing {

// A LeNet with random weights that gets its digits right, because its verdicts are their labels.
struct FuzzedSubject {
  explicit FuzzedSubject(std::vector<std::string> class_names = {}, std::int64_t images = 24) {
    Rng rng(5);
    Network::Options options;
    options.execution = {16, false};
    std::string bytes = architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng);
    network = Network::from_onnx(std::move(bytes), "lenet1", options);
    data = load_data("digits:test[0:" + std::to_string(images) + "]");
    data.labels = predict(*network, data.images).labels;
    data.class_names = std::move(class_names);
    tracer = std::make_unique<Tracer>(*network, network->select_taps("default"), NeuronUnit::channel);
  }

  void fuzz(const std::filesystem::path& folder, const std::string& guide = "random", std::uint64_t seed = 1,
            std::int64_t iterations = 32) const {
    CampaignSettings settings;
    settings.guide = guide;
    settings.seeds = data.size();
    settings.energy = 8;
    settings.batch = 4;
    settings.seed = seed;
    Budget budget;
    budget.iterations = iterations;
    Campaign(folder, settings, {*tracer, data, nullptr, "", nullptr}).run(budget, {});
  }

  std::unique_ptr<Network> network;
  Dataset data;
  std::unique_ptr<Tracer> tracer;
};

}  // namespace galvani::testing
