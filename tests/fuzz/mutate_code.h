// Damage to TorchScript source as archives hold it: text that often still compiles and then does something absurd.
#pragma once

#include <string>

#include "galvani/base/rng.h"

namespace galvani {

// The name that generated calls give to files. No model may write one.
constexpr const char* kForbiddenFile = "written_by_a_model";

// One to four of: calls of any operator LibTorch has with generated arguments, operators exchanged, numbers replaced,
// lines moved, indentation changed, expressions nested, loops and growing values inserted, annotations, defaults,
// constants of classes and methods changed or added.
std::string mutate_code(const std::string& text, Rng& rng);

}  // namespace galvani
