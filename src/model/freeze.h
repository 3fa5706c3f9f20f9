// What stands between a loaded module and the graph that is run: parameters stay, everything else that evaluation fixes
// becomes a constant.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>

namespace galvani {

struct FrozenModule {
  torch::jit::Module module;  // holds the parameters that the graph reads
  std::shared_ptr<torch::jit::Graph> graph;
};

// Of any module: calls are inlined, in-place operations replaced.
FrozenModule freeze_script(torch::jit::Module& module);

// Of a module that the ONNX importer made: one method without calls, loops or in-place operations. The result is that
// of freeze_script, in time that grows with the number of nodes only.
FrozenModule freeze_import(torch::jit::Module& module);

}  // namespace galvani
