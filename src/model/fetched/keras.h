// Image classifiers saved by Keras for TensorFlow.js ("layers model"): a JSON text with the layers and a list of
// weights that lie one after the other in binary files.
#pragma once

#include <string>

#include "galvani/model/card.h"

namespace galvani {

// As ONNX: channels first, the final softmax left out. `weights`: all binary files, joined. `label` names the model in
// errors; its card goes into the file.
std::string keras_as_onnx(const std::string& model_json, const std::string& weights, const std::string& label,
                          const ModelCard& card);

}  // namespace galvani
