// What verbs about decision paths share.
#pragma once

#include <string>
#include <vector>

#include "galvani/data/labels.h"
#include "galvani/model/network.h"
#include "galvani/semantics/path.h"

namespace galvani::cli {

// The options of paths in a spec of the guide nsgen; usage error for another guide.
PathOptions path_options(const std::string& guide);
// The model's names of its classes, else the data's.
std::vector<std::string> path_class_names(const Network& network, const Labelled& data);

}  // namespace galvani::cli
