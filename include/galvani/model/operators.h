// Which operators a TorchScript file may use.
#pragma once

#include <string>
#include <vector>

namespace galvani {

struct OperatorGroup {
  std::string title;
  bool tensors;                    // only overloads whose first argument is a tensor or a list of tensors
  std::vector<std::string> names;  // "aten::conv2d"
};

// Everything that is not listed is refused before it runs. None of these reads or writes files, starts programs, talks
// to other machines, prints, or takes memory by address or stride; overloads that write into a given tensor (`out=`)
// are refused even where the name is listed.
const std::vector<OperatorGroup>& torchscript_operators();

// As a page of docs/.
std::string torchscript_operators_markdown();

}  // namespace galvani
