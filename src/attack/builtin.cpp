#include "attack/builtin.h"

namespace galvani {

const AttackRegistry& attacks() {
  static const AttackRegistry registry(
      "attack", {fgsm_entry(), bim_entry(), pgd_entry(), apgd_entry(), fab_entry(), square_entry(), auto_entry(),
                 deepfool_entry(), jsma_entry(), cw_entry()});
  return registry;
}

OptionInfo eps_option() {
  return {"eps", 8.0 / 255, "the largest change, as a share of the full scale, such as 8/255", 0.0, 1e4, {}, true};
}

OptionInfo norm_option() {
  return {"norm", std::string("linf"), "how a change is measured", {}, {}, {"linf", "l2"}};
}

Norm norm_of(const Options& options) {
  return options.text("norm") == "l2" ? Norm::l2 : Norm::linf;
}

}  // namespace galvani
