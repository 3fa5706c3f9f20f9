// Picks of a selection, with the labels that somebody filled in.
#pragma once

#include <string>

#include "galvani/data/dataset.h"
#include "galvani/model/network.h"

namespace galvani {

bool is_labelled_table(const std::string& where);  // a CSV file

// The inputs of the table that have a label: its columns `label`, a class or its number, `pool`, the data they are
// from, and `file` or `index` say which. Error(bad_input) that names the line if something is wrong, or none has a
// label.
Dataset read_labelled_table(const Network& network, const std::string& path);

}  // namespace galvani
