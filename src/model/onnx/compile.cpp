#include "model/onnx/compile.h"

#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/script.h>

#include "galvani/base/error.h"
#include "model/onnx/program.h"
#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

// Adds `galvani_onnx`, and `annotate` for empty lists, to what TorchScript source can call.
struct SourceResolver : torch::jit::Resolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction& m,
                                                         const torch::jit::SourceRange& loc) override {
    if (name == "galvani_onnx") return std::make_shared<torch::jit::BuiltinModule>("galvani_onnx");
    if (name == "annotate") return torch::jit::SpecialFormValue::create(c10::prim::annotate);
    return torch::jit::nativeResolver()->resolveValue(name, m, loc);
  }
  c10::TypePtr resolveType(const std::string& name, const torch::jit::SourceRange& loc) override {
    return torch::jit::nativeResolver()->resolveType(name, loc);
  }
};

}  // namespace

std::shared_ptr<torch::jit::Resolver> source_resolver() {
  register_operators();
  return std::make_shared<SourceResolver>();
}

std::shared_ptr<torch::jit::CompilationUnit> compile_function(const std::string& source) {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  unit->define(c10::nullopt, source, source_resolver(), nullptr);
  return unit;
}

void build_module(const Program& program, const std::string& label, torch::jit::Module& module) {
  try {
    module.register_attribute("training", c10::BoolType::get(), true);
    for (const Program::Parameter& parameter : program.parameters) {
      // A module owns its weights: training one must not change another built from the same program.
      at::Tensor value = parameter.value.clone();
      if (parameter.trainable) {
        module.register_parameter(parameter.attribute, value.requires_grad_(), /*is_buffer=*/false);
      } else {
        module.register_buffer(parameter.attribute, value);
      }
    }
    module.define(program.source, source_resolver());
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    bad_input("{}: the graph cannot be compiled: {}", label, printable(error.what_without_backtrace(), 400));
  } catch (const std::exception& error) {
    bad_input("{}: the graph cannot be compiled: {}", label, printable(error.what(), 400));
  }
}

}  // namespace galvani::onnx
