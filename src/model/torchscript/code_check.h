// What the code of a TorchScript file may do, decided before any of it runs.
#pragma once

#include <memory>
#include <string>

namespace torch::jit {
struct Block;
struct Graph;
struct Module;
}  // namespace torch::jit

namespace galvani::torchscript {

// One source file of the archive, before LibTorch compiles it: nothing in it may run while it is loaded. Default values
// and constants of classes are evaluated then, so they must be literals; methods that restore state are called, so
// there must be none.
void check_source(const std::string& code, const std::string& name, const std::string& label);

// Every function and method LibTorch has compiled, called or not: each operator must be one of torchscript_operators(),
// its device the processor, its types ordinary ones. Error(bad_input) names the first that is not.
void check_operators(const torch::jit::Module& module, const std::string& label);

// The frozen graph that will run, where calls are gone and arguments are known: no attribute, list or dictionary of the
// model is changed while it runs, since several threads share it; numbers that LibTorch trusts are constants it can
// take; nothing draws random numbers, and nothing is in training mode. What would print is removed, and loops look up
// now and then, so that they can be ended (check_step).
void check_frozen(torch::jit::Graph& graph, const std::string& label);

}  // namespace galvani::torchscript
