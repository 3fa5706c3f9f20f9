// What one layer says about inputs, as selectors read it.
#pragma once

#include <ATen/core/Tensor.h>

#include "galvani/select/selector.h"

namespace galvani {

// inputs [N, ...] as files hold them → [N, D] float.
at::Tensor features_of(Network& network, const at::Tensor& inputs, const FeatureNeed& need);

}  // namespace galvani
