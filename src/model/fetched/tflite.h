// Image classifiers of TensorFlow Lite, in float32.
#pragma once

#include <string>
#include <string_view>

#include "galvani/model/card.h"

namespace galvani {

// As ONNX: channels first, the final softmax left out, a 1x1 convolution of a single pixel as the dense layer that it
// is. `label` names the file in errors; the card goes into the result.
std::string tflite_as_onnx(std::string_view bytes, const std::string& label, const ModelCard& card);

}  // namespace galvani
