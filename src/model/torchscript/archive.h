// TorchScript files in and out.
#pragma once

#include <string>

namespace torch::jit {
struct Module;
}

namespace galvani::torchscript {

// A TorchScript file is a zip archive.
bool is_archive(const std::string& bytes);

// Checks the archive (checksums, sizes, no operator that touches files) before LibTorch sees it, then loads it.
// `card` receives the model card the file carries, or stays empty.
void load_module(const std::string& bytes, const std::string& label, torch::jit::Module& module, std::string& card);

std::string save_module(torch::jit::Module& module, const std::string& card);

}  // namespace galvani::torchscript
