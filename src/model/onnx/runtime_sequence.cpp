// Loops and sequences.
#include <torch/library.h>
#include <torch/script.h>

#include "galvani/base/limits.h"
#include "model/limits.h"
#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

std::int64_t bytes_of(const Tensor& x) {
  return x.numel() * static_cast<std::int64_t>(x.element_size());
}

std::int64_t step(std::int64_t steps) {
  TORCH_CHECK(steps < kMostSteps, "its loops take more than ", kMostSteps, " steps");
  check_step();
  return steps + 1;
}

std::int64_t held(std::int64_t bytes, const Tensor& x) {
  bytes += bytes_of(x);
  TORCH_CHECK(bytes <= static_cast<std::int64_t>(kMostBytes), "a loop collects more than ", kMostBytes, " bytes");
  return bytes;
}

// Parts of a loop's passes, joined along a new axis. `sizes` are those of a part if there is none.
Tensor stack(const Tensors& parts, std::int64_t axis, bool backward, std::int64_t type,
             std::vector<std::int64_t> sizes) {
  if (parts.empty()) {
    auto axes = static_cast<std::int64_t>(sizes.size()) + 1;
    axis = wrap(axis, axes);
    TORCH_CHECK(axis >= 0 && axis < axes, "axis ", axis, " of a tensor with ", axes, " axes");
    sizes.insert(sizes.begin() + axis, 0);
    check_made(sizes);
    return at::empty(sizes, static_cast<at::ScalarType>(type));
  }
  if (!backward) return at::stack(parts, axis);
  return at::stack(Tensors(parts.rbegin(), parts.rend()), axis);
}

std::int64_t scan_length(const Tensors& inputs, std::vector<std::int64_t> axes) {
  std::int64_t length = inputs.at(0).size(axes.at(0));
  for (std::size_t i = 1; i < inputs.size(); ++i)
    TORCH_CHECK(inputs[i].size(axes.at(i)) == length, "its scanned inputs have different lengths");
  return length;
}

Tensor same(const Tensor& x, std::int64_t /*pass*/) {
  return x;
}

void check_sequence(const Tensors& sequence) {
  TORCH_CHECK(static_cast<std::int64_t>(sequence.size()) <= kMostInSequence, "a sequence of more than ",
              kMostInSequence, " tensors");
  std::int64_t bytes = 0;
  for (const Tensor& x : sequence) bytes = held(bytes, x);
}

Tensors sequence_insert(Tensors sequence, const Tensor& x, std::int64_t at) {
  auto count = static_cast<std::int64_t>(sequence.size());
  TORCH_CHECK(at >= -count && at <= count, "position ", at, " in a sequence of ", count);
  sequence.insert(sequence.begin() + (at < 0 ? at + count : at), x);
  check_sequence(sequence);
  return sequence;
}

Tensors sequence_erase(Tensors sequence, std::int64_t at) {
  auto count = static_cast<std::int64_t>(sequence.size());
  TORCH_CHECK(at >= -count && at < count, "position ", at, " in a sequence of ", count);
  sequence.erase(sequence.begin() + (at < 0 ? at + count : at));
  return sequence;
}

Tensor sequence_at(const Tensors& sequence, std::int64_t at) {
  auto count = static_cast<std::int64_t>(sequence.size());
  TORCH_CHECK(at >= -count && at < count, "position ", at, " in a sequence of ", count);
  return sequence[at < 0 ? at + count : at];
}

// `chunks`: `sizes` is the one size of all pieces, the last of which may be smaller.
Tensors split_sequence(const Tensor& x, std::vector<std::int64_t> sizes, std::int64_t axis, bool chunks, bool keep) {
  if (chunks) {
    std::int64_t size = sizes.empty() ? 0 : sizes[0];
    TORCH_CHECK(size > 0, "pieces of ", size);
    std::int64_t length = x.size(axis);
    TORCH_CHECK(length / size < kMostInSequence, "a sequence of more than ", kMostInSequence, " tensors");
    if (length == 0) return {};
    Tensors pieces = at::split(x, size, axis);
    if (keep) return pieces;
    for (Tensor& piece : pieces) piece = piece.squeeze(axis);
    return pieces;
  }
  TORCH_CHECK(static_cast<std::int64_t>(sizes.size()) <= kMostInSequence, "a sequence of more than ", kMostInSequence,
              " tensors");
  return at::split_with_sizes(x, sizes, axis);
}

}  // namespace

void define_sequence(torch::Library& library) {
  library.def("step(int steps) -> int", step);
  library.def("held(int bytes, Tensor x) -> int", held);
  library.def("stack(Tensor[] parts, int axis, bool backward, int type, int[] sizes) -> Tensor", stack);
  library.def("scan_length(Tensor[] inputs, int[] axes) -> int", scan_length);
  library.def("same(Tensor x, int pass_number) -> Tensor", same);
  library.def("sequence_insert(Tensor[] sequence, Tensor x, int at) -> Tensor[]", sequence_insert);
  library.def("sequence_erase(Tensor[] sequence, int at) -> Tensor[]", sequence_erase);
  library.def("sequence_at(Tensor[] sequence, int at) -> Tensor", sequence_at);
  library.def("split_sequence(Tensor x, int[] sizes, int axis, bool chunks, bool keep) -> Tensor[]", split_sequence);
}

}  // namespace galvani::onnx
