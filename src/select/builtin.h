// The selectors that come with us; builtin.cpp lists them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "galvani/select/selector.h"

namespace galvani {

using SelectorEntry = SelectorRegistry::Entry;

// uncertainty.cpp
SelectorEntry random_entry();
SelectorEntry softmax_entry();
SelectorEntry gini_entry();
SelectorEntry entropy_entry();
SelectorEntry pcs_entry();
SelectorEntry internal_gini_entry();
SelectorEntry mc_dropout_entry();
SelectorEntry nss_entry();
SelectorEntry flip_entry();
// coverage.cpp
SelectorEntry nac_selector_entry();
SelectorEntry kmnc_selector_entry();
SelectorEntry npc_selector_entry();
// surprise.cpp
SelectorEntry dsa_entry();
SelectorEntry lsa_entry();
SelectorEntry mdsa_entry();
SelectorEntry ats_entry();
SelectorEntry datis_entry();
SelectorEntry sets_entry();
SelectorEntry nns_entry();
SelectorEntry prima_entry();
SelectorEntry fused_entry();

// Of each row of probabilities, [n, classes] float: 1 - Σp² (DeepGini).
void gini_of(const at::Tensor& probabilities, double* out);
// The largest less the second largest.
double prediction_confidence(const float* probabilities, std::int64_t classes);

// [n, width] → rows of length 1; rows of zeros stay.
at::Tensor unit_rows(const at::Tensor& features);

}  // namespace galvani
