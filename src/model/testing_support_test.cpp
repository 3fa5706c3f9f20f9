#include <torch/script.h>

#include <cstdlib>

#include "galvani/base/files.h"
#include "galvani/base/rng.h"
#include "galvani/model/zoo.h"
#include "model/testing.h"

namespace galvani::testing {

std::unique_ptr<Network> zoo_network(const std::string& spec, Execution execution) {
  Rng rng(1);
  ArchitectureShape shape =
      spec.rfind("lenet", 0) == 0 ? ArchitectureShape{1, 28, 28, 10} : ArchitectureShape{3, 32, 32, 10};
  Network::Options options;
  options.execution = execution;
  return Network::from_onnx(architectures().create(Spec::parse(spec), shape, rng), spec, options);
}

Network::Options script_options() {
  Network::Options options;
  options.execution = {16, false};
  options.data_shape = {3, 8, 8};
  return options;
}

std::unique_ptr<Network> scripted(const std::string& source, const std::map<std::string, at::Tensor>& parameters,
                                  const Network::Options& options) {
  torch::jit::Module module("scripted");
  module.register_attribute("training", c10::BoolType::get(), true);
  for (const auto& [name, value] : parameters) module.register_parameter(name, value, false);
  // Raw strings in tests are indented; TorchScript wants to start at the margin.
  std::string text;
  std::size_t indent = source.find_first_not_of(" \n");
  std::size_t margin = indent - (source.rfind('\n', indent) + 1);
  for (std::size_t start = 0; start < source.size();) {
    std::size_t end = std::min(source.find('\n', start), source.size());
    std::string line = source.substr(start, end - start);
    if (line.find_first_not_of(' ') != std::string::npos) text += line.substr(std::min(margin, line.size())) + "\n";
    start = end + 1;
  }
  module.define(text);
  TemporaryFolder folder;
  module.save((folder / "scripted.pt").string());
  return Network::load(folder / "scripted.pt", options);
}

OwnCache::OwnCache() {
  if (const char* now = std::getenv("GALVANI_CACHE")) before_ = now;
  ::setenv("GALVANI_CACHE", folder_.path().c_str(), 1);
}

OwnCache::~OwnCache() {
  if (before_.empty())
    ::unsetenv("GALVANI_CACHE");
  else
    ::setenv("GALVANI_CACHE", before_.c_str(), 1);
}

at::Tensor random_images(const Network& network, std::int64_t n) {
  const auto& in = network.info().input;
  at::Tensor images = at::empty({n, in[0], in[1], in[2]}, at::kByte);
  Rng rng(5);
  auto* pixels = images.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < images.numel(); ++i) pixels[i] = static_cast<std::uint8_t>(rng.below(256));
  return images;
}

}  // namespace galvani::testing
