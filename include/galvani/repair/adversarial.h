// Training against an attack: every batch is shown as the attack leaves it (Madry et al. 2018).
#pragma once

#include "galvani/base/registry.h"
#include "galvani/model/train.h"

namespace galvani {

using AdversaryRegistry = Registry<Perturbation, const Network&>;
const AdversaryRegistry& adversaries();  // pgd
Perturbation make_adversary(const Spec& spec, const Network& network);

}  // namespace galvani
