#include "galvani/select/features.h"

#include <ATen/ATen.h>

#include "select/pass.h"

namespace galvani {

at::Tensor features_of(Network& network, const at::Tensor& inputs, const FeatureNeed& need) {
  return SharedPass(network, need).run(inputs, false).features[0].flatten(1).to(at::kFloat);
}

}  // namespace galvani
