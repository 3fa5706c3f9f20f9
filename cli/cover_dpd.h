// Decision path discrepancy beside the criteria of `galvani cover`: it compares inputs with what they were made of, so
// it is no criterion of traces.
#pragma once

#include <optional>
#include <string>

#include "galvani/base/json.h"
#include "galvani/base/options.h"
#include "galvani/data/view.h"
#include "galvani/model/network.h"
#include "galvani/semantics/discrepancy.h"

namespace galvani::cli {

// For lists of criteria.
inline constexpr const char* kDpdHelp = "inputs decided for other reasons than what they were made of (--originals)";
OptionSchema dpd_schema();

// Takes `dpd:...` out of a list of criteria.
std::optional<Spec> take_dpd(std::string& criteria);
// `spec` has the options of the guide nsgen. Usage error without a file of descriptions, or where no threshold is
// known.
Discrepancy measure_dpd(const Spec& spec, Network& network, const DataView& inputs, const DataView& originals);

Json dpd_json(const Discrepancy& found);
void print_dpd(const Discrepancy& found);

}  // namespace galvani::cli
