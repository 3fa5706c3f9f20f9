#include <iterator>
#include <utility>

#include "model/zoo/families.h"

namespace galvani {
namespace zoo {

Entry architecture(const std::string& name, const std::string& help, const OptionSchema& schema, const Layers& layers) {
  return {name, help, schema, [name, layers](const Options& options, const ArchitectureShape& shape, Rng& rng) {
            GraphBuilder net(name, shape, rng);
            Value logits = layers(net, options);
            return net.finish(logits, options.str());
          }};
}

OptionInfo stem_option() {
  return {"stem",
          std::string("auto"),
          "first layers: imagenet, cifar (no early shrinking), auto: cifar below 64 pixels",
          {},
          {},
          {"auto", "imagenet", "cifar"}};
}

bool cifar_stem(const GraphBuilder& net, const Options& options) {
  const std::string& stem = options.text("stem");
  return stem == "cifar" || (stem == "auto" && net.smaller_side() < 64);
}

}  // namespace zoo

ArchitectureShape ArchitectureShape::of(const SampleType& type, std::int64_t classes) {
  if (type.kind == SampleKind::audio) return {type.shape[0], 0, 0, classes, type.shape[1], type.rate};
  return {type.shape[0], type.shape[1], type.shape[2], classes};
}

const ArchitectureRegistry& architectures() {
  static const ArchitectureRegistry registry = [] {
    std::vector<zoo::Entry> entries;
    for (auto family :
         {zoo::lenet_architectures, zoo::sadl_architectures, zoo::vgg_architectures, zoo::cifar_resnet_architectures,
          zoo::resnet_architectures, zoo::mobilenet_architectures, zoo::sound_architectures}) {
      std::vector<zoo::Entry> members = family();
      std::move(members.begin(), members.end(), std::back_inserter(entries));
    }
    return ArchitectureRegistry("architecture", std::move(entries));
  }();
  return registry;
}

}  // namespace galvani
