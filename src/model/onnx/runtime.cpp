#include "model/onnx/runtime.h"

#include <torch/library.h>

#include <algorithm>

#include "model/limits.h"

namespace galvani::onnx {

void check_made(c10::IntArrayRef sizes) {
  std::int64_t elements = 1;
  for (std::int64_t size : sizes) {
    TORCH_CHECK(size >= 0, "a dimension of ", size);
    TORCH_CHECK(size == 0 || elements <= kMostElements / size, "a tensor of more than ", kMostElements, " elements");
    elements *= std::max<std::int64_t>(size, 1);
  }
}

void register_operators() {
  static const torch::Library library = [] {
    torch::Library made(torch::Library::DEF, "galvani_onnx", c10::nullopt, __FILE__, __LINE__);
    define_basic(made);
    define_nn(made);
    define_index(made);
    define_quant(made);
    define_image(made);
    define_recurrent(made);
    define_signal(made);
    define_loss(made);
    define_sequence(made);
    define_attention(made);
    define_ml(made);
    return made;
  }();
  (void)library;
}

}  // namespace galvani::onnx
