// Network architectures as ONNX files with freshly initialised weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/base/rng.h"
#include "galvani/data/sample.h"

namespace galvani {

// What a network is built for.
struct ArchitectureShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
  std::int64_t length = 0;  // of sounds, in samples; 0: the network is one of images
  std::int64_t rate = 0;    // of sounds, samples a second

  static ArchitectureShape of(const SampleType& type, std::int64_t classes);
};

// Builds the bytes of an ONNX model (opset 13, dynamic batch, logits out, no softmax). A tensor is drawn from a stream
// derived from the Rng and its name; the Rng itself is not advanced. docs/zoo.md lists the architectures.
using ArchitectureRegistry = Registry<std::string, const ArchitectureShape&, Rng&>;
const ArchitectureRegistry& architectures();

}  // namespace galvani
