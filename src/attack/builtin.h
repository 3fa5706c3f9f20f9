// The attacks that come with us, one file each; builtin.cpp lists them.
#pragma once

#include "galvani/attack/attack.h"

namespace galvani {

using AttackEntry = AttackRegistry::Entry;

AttackEntry fgsm_entry();

// Options that several have.
OptionInfo eps_option();
OptionInfo norm_option();  // linf or l2
Norm norm_of(const Options& options);

}  // namespace galvani
