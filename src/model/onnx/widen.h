// float16 and bfloat16 models as float32 ones.
#pragma once

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

namespace galvani::onnx {

// Whether the model has float16 or bfloat16 in its input, its weights or its conversions. If so, every such type that
// the graph states becomes float32. Initialisers and Constant nodes stay: `widened` is for what is read from them.
bool widen_types(::onnx::ModelProto& model);

// Whether an input is of such a type.
bool has_half_input(const ::onnx::ModelProto& model);

at::Tensor widened(const at::Tensor& value);

}  // namespace galvani::onnx
