// The attacks that come with us, one file each; builtin.cpp lists them.
#pragma once

#include "galvani/attack/attack.h"

namespace galvani {

using AttackEntry = AttackRegistry::Entry;

AttackEntry fgsm_entry();
AttackEntry bim_entry();
AttackEntry pgd_entry();
AttackEntry apgd_entry();
AttackEntry fab_entry();
AttackEntry square_entry();
AttackEntry auto_entry();
AttackEntry deepfool_entry();
AttackEntry jsma_entry();
AttackEntry cw_entry();

// Options that several have.
OptionInfo eps_option();
OptionInfo norm_option();  // linf or l2
Norm norm_of(const Options& options);

}  // namespace galvani
