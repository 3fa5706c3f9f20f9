#include <torch/script.h>

#include "attribute/testing.h"
#include "galvani/base/files.h"
#include "galvani/base/rng.h"
#include "galvani/model/zoo.h"

namespace galvani::testing {

std::unique_ptr<Network> scripted_network(const std::string& body, const std::map<std::string, at::Tensor>& parameters,
                                          const std::vector<std::int64_t>& input, const Network::Options& options) {
  torch::jit::Module module("scripted");
  module.register_attribute("training", c10::BoolType::get(), true);
  for (const auto& [name, value] : parameters) module.register_parameter(name, value, false);
  module.define("def forward(self, x):\n" + body);
  TemporaryFolder folder;
  module.save((folder / "scripted.pt").string());
  Network::Options with_shape = options;
  with_shape.data_shape = input;
  return Network::load(folder / "scripted.pt", with_shape);
}

std::unique_ptr<Network> published_network(std::int64_t micro_batch) {
  Network::Options options;
  options.execution = {micro_batch, false};
  options.flags.range = "0..255";
  auto one_by_one = [](const at::Tensor& weight) { return weight.view({weight.size(0), weight.size(1), 1, 1}); };
  return scripted_network(
      "  a = torch.conv2d(x, self.w1)\n"
      "  b = torch.conv2d(a, self.w2, self.b2)\n"
      "  c = torch.relu(b)\n"
      "  d = torch.conv2d(c, self.w3, self.b3)\n"
      "  return d.flatten(1)\n",
      {{"w1", one_by_one(at::eye(3))},
       {"w2", one_by_one(at::ones({4, 3}))},
       {"b2", at::tensor({-10.F, 1.F, 1.F, 1.F})},
       {"w3", one_by_one(at::ones({2, 4}))},
       {"b3", at::tensor({-1.F, 1.F})}},
      {3, 1, 1}, options);
}

std::unique_ptr<Network> zoo_network(const std::string& spec, const std::vector<std::int64_t>& input,
                                     std::int64_t micro_batch) {
  Rng rng(1);
  Network::Options options;
  options.execution = {micro_batch, false};
  ArchitectureShape shape{input[0], input[1], input[2], 10};
  return Network::from_onnx(architectures().create(Spec::parse(spec), shape, rng), spec, options);
}

at::Tensor random_images(const Network& network, std::int64_t n) {
  std::vector<std::int64_t> shape = network.info().input;
  shape.insert(shape.begin(), n);
  at::Tensor images = at::empty(shape, at::kByte);
  Rng rng(5);
  auto* pixels = images.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < images.numel(); ++i) pixels[i] = static_cast<std::uint8_t>(rng.below(256));
  return images;
}

}  // namespace galvani::testing
