// TorchScript files in and out.
#pragma once

#include <string>

namespace torch::jit {
struct Graph;
struct Module;
}  // namespace torch::jit

namespace galvani::torchscript {

// A TorchScript file is a zip archive.
bool is_archive(const std::string& bytes);

// Checks the archive (checksums, sizes, pickles, code that would run while loading) before LibTorch sees it, loads it
// and checks what LibTorch compiled (docs/security.md), before anything runs. `card` receives the model card the file
// carries, or stays empty.
void load_module(const std::string& bytes, const std::string& label, torch::jit::Module& module, std::string& card);

// What is left to check once calls are gone and arguments are known.
void check_graph(torch::jit::Graph& frozen, const std::string& label);

std::string save_module(torch::jit::Module& module, const std::string& card);

}  // namespace galvani::torchscript
