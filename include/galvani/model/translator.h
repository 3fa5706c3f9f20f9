// Networks that turn images into images, and critics that tell made images from real ones, as ONNX files with freshly
// initialised weights: what CycleGAN is made of.
#pragma once

#include <string>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"
#include "galvani/model/zoo.h"

namespace galvani {

// Translators one behind the other: the second reads what the first gives.
struct TranslatorRequest {
  ArchitectureShape shape;            // of the images; classes do not matter
  std::vector<std::string> prefixes;  // one a translator, before the names of its layers: {"p.", "q."}
  Rng rng{0};
};

// Bytes of an ONNX model (opset 13, open batch). Its input and outputs are images [C, H, W] from -1 to 1: first
// "example", what the last translator gives, then, if there are two, "transformed", what the first one does. A weight
// is drawn from a stream derived from its name, so a translator begins with the same weights alone as in a row.
using TranslatorRegistry = Registry<std::string, const TranslatorRequest&>;
const TranslatorRegistry& translators();  // resnet, unet

// A critic of patches: an image [C, H, W] from -1 to 1 gives a map [1, h, w] of scores, one for every patch.
std::string critic_onnx(const ArchitectureShape& shape, std::int64_t width, const std::string& prefix, const Rng& rng);

}  // namespace galvani
