// The picks of a selection as one HTML page for the person who labels them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "galvani/data/sample.h"

namespace galvani {

struct PickCard {
  at::Tensor image;  // [C, H, W] uint8; undefined: nothing to be seen
  std::string title;
  std::vector<std::string> lines;
  std::string before, after;  // of its line in the table, around the label
};

struct SelectionPage {
  std::string title;
  std::string subtitle;
  std::vector<std::string> notes;
  std::vector<std::string> classes;  // suggested where a label is typed
  std::string header;                // of the table
  std::string table;                 // what the file with the labels is called
  SampleType type;
  std::vector<PickCard> picks;
};

// Pictures in order, each with a field for its label; a button saves the table with the labels that were typed, as
// `galvani repair --tests` takes it. Nothing is loaded from anywhere.
std::string selection_page(const SelectionPage& page);

}  // namespace galvani
