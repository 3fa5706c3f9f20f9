// The families of architectures, and how an entry of the registry is made of a function that lays out the layers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "galvani/base/options.h"
#include "galvani/model/zoo.h"
#include "model/zoo/builder.h"

namespace galvani::zoo {

using Entry = ArchitectureRegistry::Entry;

// Adds all layers to the builder and returns the logits.
using Layers = std::function<Value(GraphBuilder&, const Options&)>;

Entry architecture(const std::string& name, const std::string& help, const OptionSchema& schema, const Layers& layers);

// Networks made for photographs shrink the image too early for thumbnails: `stem=auto|imagenet|cifar` chooses.
OptionInfo stem_option();
bool cifar_stem(const GraphBuilder& net, const Options& options);

std::vector<Entry> lenet_architectures();
std::vector<Entry> sadl_architectures();
std::vector<Entry> vgg_architectures();
std::vector<Entry> cifar_resnet_architectures();
std::vector<Entry> resnet_architectures();
std::vector<Entry> mobilenet_architectures();
std::vector<Entry> sound_architectures();

}  // namespace galvani::zoo
