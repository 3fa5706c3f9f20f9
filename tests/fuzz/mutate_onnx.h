// Damage to what an ONNX model says rather than to how it is written: the result is always a readable protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include "galvani/base/rng.h"

namespace galvani {

// One to four of: numbers replaced by boundary values, names swapped, parts dropped, repeated or exchanged, types
// changed.
void mutate_onnx(::onnx::ModelProto& model, Rng& rng);

}  // namespace galvani
