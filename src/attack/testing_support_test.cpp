#include <torch/script.h>

#include "attack/testing.h"
#include "galvani/base/files.h"
#include "galvani/data/dataset.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"

namespace galvani::testing {

std::unique_ptr<Network> scripted_network(const std::string& body, const std::map<std::string, at::Tensor>& parameters,
                                          const std::vector<std::int64_t>& input) {
  torch::jit::Module module("scripted");
  module.register_attribute("training", c10::BoolType::get(), true);
  for (const auto& [name, value] : parameters) module.register_parameter(name, value, false);
  module.define("def forward(self, x):\n" + body);
  TemporaryFolder folder;
  module.save((folder / "scripted.pt").string());
  Network::Options options;
  options.execution = {16, false};
  options.data_shape = input;
  return Network::load(folder / "scripted.pt", options);
}

LinearCase::LinearCase(std::int64_t classes, std::int64_t n, double lean)
    : weight(at::empty({classes, 192})), bias(at::empty({classes})), images(at::empty({n, 3, 8, 8}, at::kByte)) {
  Rng rng(1);
  rng.fill_normal(weight.data_ptr<float>(), static_cast<std::size_t>(weight.numel()));
  rng.fill_normal(bias.data_ptr<float>(), static_cast<std::size_t>(bias.numel()));
  for (std::int64_t i = 0; i < images.numel(); ++i)
    images.data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(
        std::clamp(125 + lean * weight[i / 192 % classes][i % 192].item<double>() + rng.uniform(-30, 30), 50.0, 205.0));
  network =
      scripted_network("  return torch.matmul(x.flatten(1), self.w.t()) + self.b\n", {{"w", weight}, {"b", bias}});
  labels = predict(*network, images).labels;
}

at::Tensor LinearCase::smallest(Norm norm) const {
  at::Tensor x = images.flatten(1).to(at::kDouble) / 255;
  at::Tensor w = weight.to(at::kDouble);
  at::Tensor scores = x.matmul(w.t()) + bias.to(at::kDouble);
  at::Tensor result = at::full({images.size(0)}, HUGE_VAL, at::kDouble);
  for (std::int64_t row = 0; row < images.size(0); ++row) {
    auto label = labels[row].item<std::int64_t>();
    for (std::int64_t other = 0; other < w.size(0); ++other) {
      if (other == label) continue;
      auto margin = (scores[row][label] - scores[row][other]).item<double>();
      auto size = (w[label] - w[other]).norm(norm == Norm::linf ? 1 : 2).item<double>();
      result[row] = std::min(result[row].item<double>(), margin / size);
    }
  }
  return result;
}

DigitsCase::DigitsCase(std::int64_t n) {
  Rng rng(5);
  Network::Options options;
  options.execution = {16, false};
  network = Network::from_onnx(architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng),
                               "lenet1", options);
  images = load_data("digits:test[0:" + std::to_string(n) + "]").images;
  labels = predict(*network, images).labels;
  for (std::int64_t i = 0; i < 2; ++i) labels[i] = (labels[i] + 1).remainder(10);
}

AttackTask task_of(const at::Tensor& inputs, const at::Tensor& labels, std::uint64_t seed) {
  AttackTask task;
  task.inputs = inputs;
  task.labels = labels;
  for (std::int64_t i = 0; i < inputs.size(0); ++i)
    task.streams.push_back(Rng(seed).derive(static_cast<std::uint64_t>(i)));
  return task;
}

Attacked attacked(Network& network, const std::string& spec, const AttackTask& task) {
  return (*make_attack(Spec::parse(spec)))(network, task);
}

}  // namespace galvani::testing
