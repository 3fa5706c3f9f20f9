// Compiling emitted source: TorchScript that may call the operators of runtime.h.
#pragma once

#include <memory>
#include <string>

namespace torch::jit {
struct CompilationUnit;
struct Resolver;
}  // namespace torch::jit

namespace galvani::onnx {

std::shared_ptr<torch::jit::Resolver> source_resolver();
std::shared_ptr<torch::jit::CompilationUnit> compile_function(const std::string& source);

}  // namespace galvani::onnx
