// What a model file may ask for. docs/onnx.md states these figures too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace galvani {

// Of one value in a network, views that repeat their elements included: 2^30 floats are 4 GiB.
constexpr std::int64_t kMostElements = std::int64_t{1} << 30;
constexpr std::uint64_t kMostBytes = 4 * static_cast<std::uint64_t>(kMostElements);

// Of an input: images in a batch that the file fixes, and values in all of them together.
constexpr std::int64_t kLargestBatch = 4096;
constexpr std::int64_t kMostInputValues = std::int64_t{1} << 28;

// Of an ONNX graph with its functions written out: nodes, and the statements they become. LibTorch compiles about ten
// thousand statements in a second.
constexpr std::int64_t kMostStatements = 100'000;
constexpr std::size_t kMostSource = std::size_t{64} << 20;
// Weights and constants that an ONNX graph reads: LibTorch finds one by going through all.
constexpr std::int64_t kMostTensors = 20'000;

}  // namespace galvani
