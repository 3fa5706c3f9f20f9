// Weights by name, copies of a network, and what identifies its weights.
#include <fmt/format.h>
#include <torch/script.h>

#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/options.h"
#include "model/graph_tools.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

struct Place {
  NamedParameter info;
  std::string path;  // in the module
};

std::vector<Place> places(const Network::Impl& impl) {
  std::set<std::string> trainable(impl.trainable.begin(), impl.trainable.end());
  std::set<std::string> taken;
  std::vector<Place> result;
  auto add = [&](const std::string& path, const at::Tensor& value) {
    std::string name = path;
    if (impl.info.format == "onnx") {
      auto found = impl.initializer_of.find(path);
      if (found == impl.initializer_of.end()) return;
      name = found->second;
    }
    // Functions of an ONNX file may repeat a name; the first is meant.
    if (value.is_floating_point() && taken.insert(name).second)
      result.push_back({{name, value.sizes().vec(), trainable.count(path) != 0}, path});
  };
  for (const auto& parameter : impl.module.named_parameters()) add(parameter.name, parameter.value);
  for (const auto& buffer : impl.module.named_buffers()) add(buffer.name, buffer.value);
  return result;
}

std::string path_of(const Network::Impl& impl, const std::string& name) {
  std::vector<std::string> names;
  for (const Place& place : places(impl)) {
    if (place.info.name == name) return place.path;
    names.push_back(place.info.name);
  }
  std::string near = nearest_word(name, names);
  bad_usage("{} has no parameter '{}'{}", impl.info.path, printable(name),
            near.empty() ? "" : ", did you mean '" + near + "'?");
}

}  // namespace

std::string Network::Impl::weights_hash() const {
  std::string all;
  auto add = [&](const std::string& name, const at::Tensor& value) {
    at::Tensor dense = value.detach().contiguous();
    all += name + " " + sha256({static_cast<const char*>(dense.data_ptr()), dense.nbytes()}) + "\n";
  };
  for (const auto& parameter : module.named_parameters()) add(parameter.name, parameter.value);
  for (const auto& buffer : module.named_buffers()) add(buffer.name, buffer.value);
  return sha256(all);
}

void Network::Impl::weights_change() {
  if (loaded_weights.empty()) loaded_weights = weights_hash();
  weights_version += 1;
}

std::vector<NamedParameter> Network::parameters() const {
  std::vector<NamedParameter> result;
  for (Place& place : places(*impl_)) result.push_back(std::move(place.info));
  return result;
}

at::Tensor Network::parameter(const std::string& name) const {
  return attribute_at(impl_->module, path_of(*impl_, name))
      .detach()
      .to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
}

void Network::set_parameter(const std::string& name, const at::Tensor& value) {
  std::string path = path_of(*impl_, name);
  at::Tensor tensor = attribute_at(impl_->module, path);
  if (value.sizes() != tensor.sizes() || value.scalar_type() != at::kFloat)
    bad_usage("the parameter '{}' of {} takes float values of shape [{}]", printable(name), impl_->info.path,
              fmt::format("{}", fmt::join(tensor.sizes(), ", ")));
  impl_->weights_change();
  at::NoGradGuard no_grad;
  auto narrow = impl_->narrow.find(path);
  tensor.copy_(narrow == impl_->narrow.end() ? value : value.to(narrow->second));
}

std::string Network::identity() const {
  const Impl& impl = *impl_;
  if (impl.loaded_weights.empty()) return impl.info.sha256;
  std::string now = impl.weights_hash();
  return now == impl.loaded_weights ? impl.info.sha256 : sha256(impl.info.sha256 + now);
}

std::uint64_t Network::weights_version() const {
  return impl_->weights_version;
}

std::unique_ptr<Network> Network::clone() const {
  const Impl& from = *impl_;
  auto impl = std::make_unique<Impl>();
  impl->info = from.info;
  impl->card = from.card;
  impl->module = from.module.deepcopy();
  impl->taps = from.taps;
  impl->any_output = from.any_output;
  impl->output_names = from.output_names;
  impl->kept_outputs = from.kept_outputs;
  impl->execution = from.execution;
  impl->wanted_micro_batch = from.wanted_micro_batch;
  impl->may_fuse = from.may_fuse;
  impl->initializer_of = from.initializer_of;
  impl->trainable = from.trainable;
  impl->original = from.original;
  impl->folder = from.folder;
  impl->loaded_weights = from.loaded_weights;
  impl->weights_version = from.weights_version;
  impl->narrow = from.narrow;
  impl->executor = from.executor->with_weights(impl->freeze());
  return std::unique_ptr<Network>(new Network(std::move(impl)));
}

}  // namespace galvani
