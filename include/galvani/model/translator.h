// Networks that turn images into images, and critics that tell made images from real ones, as ONNX files with freshly
// initialised weights: what CycleGAN is made of.
#pragma once

#include <string>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"
#include "galvani/model/zoo.h"

namespace galvani {

// One translator alone, or the two of a cycle with both ways through it: P, then Q, and Q, then P.
struct TranslatorRequest {
  ArchitectureShape shape;            // of the images; classes do not matter
  std::vector<std::string> prefixes;  // one a translator, before the names of its layers: {"p.", "q."}
  Rng rng{0};
};

// Outputs of a cycle. Images of the first domain become Q(P(x)), those of the second P(Q(y)) (CAGFuzz, eq. 4).
constexpr const char* kExample = "example";                            // Q(P(x))
constexpr const char* kTransformed = "transformed";                    // P(x)
constexpr const char* kExampleOfSecond = "example_of_second";          // P(Q(y))
constexpr const char* kTransformedOfSecond = "transformed_of_second";  // Q(y)
// [1]: above 0 if an image is nearer to the mean image of the second domain, in squares of differences; its layer is
// "domain", with weights "domain.weight" [1, C · H · W] and "domain.bias" [1].
constexpr const char* kDomainScore = "domain_score";

// Bytes of an ONNX model (opset 13, open batch). Its input and outputs are images [C, H, W] from -1 to 1. One
// translator gives "example" alone; two give all of the above, in that order. A weight is drawn from a stream derived
// from its name, so a translator begins with the same weights alone as in a cycle.
using TranslatorRegistry = Registry<std::string, const TranslatorRequest&>;
const TranslatorRegistry& translators();  // resnet, unet

// A critic of patches: an image [C, H, W] from -1 to 1 gives a map [1, h, w] of scores, one for every patch.
std::string critic_onnx(const ArchitectureShape& shape, std::int64_t width, const std::string& prefix, const Rng& rng);

}  // namespace galvani
