#include <torch/library.h>
#include <torch/script.h>

#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::Tensor;

// Log probabilities [N, C, ...], targets [N, ...]; reduction 0 none, 1 mean weighted by class, 2 sum.
Tensor nll_loss(const Tensor& logs, const Tensor& target, const c10::optional<Tensor>& weight,
                c10::optional<std::int64_t> ignored, std::int64_t reduction) {
  TORCH_CHECK(logs.dim() >= 2, "log probabilities need a batch and classes");
  Tensor classes = target.to(at::kLong);
  Tensor counted = at::ones_like(classes, at::kBool);
  if (ignored) counted = classes != *ignored;
  // An ignored target may lie outside the classes; any class will do, as it is weighed 0.
  classes = at::where(counted, classes, at::zeros_like(classes));
  Tensor loss = -logs.gather(1, classes.unsqueeze(1)).squeeze(1);
  Tensor weights = counted.to(logs.scalar_type());
  if (weight) weights = weights * weight->index_select(0, classes.reshape({-1})).reshape(classes.sizes());
  loss = loss * weights;
  if (reduction == 0) return loss;
  return reduction == 2 ? loss.sum() : loss.sum() / weights.sum();
}

}  // namespace

void define_loss(torch::Library& library) {
  library.def("nll_loss(Tensor logs, Tensor target, Tensor? weight, int? ignored, int reduction) -> Tensor", nll_loss);
}

}  // namespace galvani::onnx
