// LibTorch's unpickler puts any value into any attribute of an object; the code then reads it as what it declares.
#pragma once

#include <string>

namespace torch::jit {
struct Module;
}

namespace galvani::torchscript {

// Error(bad_input) unless every attribute, down to the last element, holds a value of the type that its class declares.
// Before anything else is done with the module.
void check_attributes(const torch::jit::Module& module, const std::string& label);

}  // namespace galvani::torchscript
