#include "model/onnx/runtime.h"

#include <torch/library.h>

namespace galvani::onnx {

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
    return made;
  }();
  (void)library;
}

}  // namespace galvani::onnx
