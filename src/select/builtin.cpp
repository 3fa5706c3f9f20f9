// The table of selectors.
#include "select/builtin.h"

namespace galvani {

SelectorRegistry& selectors() {
  static SelectorRegistry registry(
      "selector", {random_entry(),        softmax_entry(),      gini_entry(), entropy_entry(), pcs_entry(),
                   internal_gini_entry(), mc_dropout_entry(),   nss_entry(),  flip_entry(),    nac_selector_entry(),
                   kmnc_selector_entry(), npc_selector_entry(), dsa_entry(),  lsa_entry(),     mdsa_entry(),
                   ats_entry(),           datis_entry(),        sets_entry(), nns_entry(),     prima_entry(),
                   fused_entry()});
  return registry;
}

}  // namespace galvani
