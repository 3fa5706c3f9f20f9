// Operators that emitted source calls as `galvani_onnx.name(...)`, for what no single ATen operator does.
//
// All are composed of ATen operators, so gradients flow through them. They are registered when the first source is
// compiled: a static initialiser of a static library would be dropped by the linker.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>

namespace torch {
class Library;
}

namespace galvani::onnx {

// Passes of loops that one run of a model may take, and tensors in a sequence.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 20;
constexpr std::int64_t kMostInSequence = std::int64_t{1} << 16;

void register_operators();

// Throws unless a tensor of these sizes stays within kMostElements, an empty one counted as if it had no axis of size
// 0: it takes no memory, but LibTorch crashes where the strides it derives from the sizes overflow.
void check_made(c10::IntArrayRef sizes);
// An axis counted from the end if it is negative, counted from the start.
std::int64_t wrap(std::int64_t axis, std::int64_t rank);

// Each family defines its own.
void define_basic(torch::Library& library);
void define_nn(torch::Library& library);
void define_index(torch::Library& library);
void define_quant(torch::Library& library);
void define_image(torch::Library& library);
void define_recurrent(torch::Library& library);
void define_signal(torch::Library& library);
void define_loss(torch::Library& library);
void define_sequence(torch::Library& library);
void define_attention(torch::Library& library);
void define_ml(torch::Library& library);

}  // namespace galvani::onnx
