// Runs the ONNX backend test suites against the importer: every case passes, or is refused naming its operator.
#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>
#include <torch/script.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/runtime.h"
#include "model/onnx/program.h"
#include "model/onnx/tensors.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;
namespace importer = galvani::onnx;

enum class Verdict { passed, refused, failed };
const char* const kVerdicts[] = {"passed", "refused", "failed"};

struct Case {
  std::string suite;
  std::string name;
  std::set<std::string> operators;
  std::int64_t opset = 0;
  Verdict verdict = Verdict::failed;
  std::string reason;
};

struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

at::Tensor to_tensor(::onnx::TensorProto proto, const fs::path& path, at::ScalarType type) {
  // The suite's writer had no bfloat16 and stored its bits as uint16.
  if (type == at::kBFloat16 && proto.data_type() == ::onnx::TensorProto::UINT16)
    proto.set_data_type(::onnx::TensorProto::BFLOAT16);
  return importer::TensorReader(path.parent_path(), path.filename().string()).read(proto);
}

// A tensor, or a list of tensors where the port is a sequence.
c10::IValue read_value(const fs::path& path, const importer::Program::Port& port) {
  std::string bytes = read_file(path);
  if (!port.sequence) {
    ::onnx::TensorProto proto;
    if (!proto.ParseFromString(bytes)) bad_input("{}: is no tensor", path.string());
    return to_tensor(std::move(proto), path, port.type);
  }
  ::onnx::SequenceProto sequence;
  if (!sequence.ParseFromString(bytes)) bad_input("{}: is no sequence", path.string());
  c10::List<at::Tensor> list;
  for (const auto& proto : sequence.tensor_values()) list.push_back(to_tensor(proto, path, port.type));
  return list;
}

// The tolerance of the ONNX backend test runner: |a - b| <= atol + rtol |b|, NaN equals NaN.
void compare(const at::Tensor& actual, const at::Tensor& expected, const std::string& where) {
  if (actual.scalar_type() != expected.scalar_type())
    throw Mismatch(fmt::format("{} has type {} instead of {}", where, c10::toString(actual.scalar_type()),
                               c10::toString(expected.scalar_type())));
  if (actual.sizes() != expected.sizes()) throw Mismatch(fmt::format("{} has another shape than expected", where));
  if (actual.numel() == 0) return;
  at::Tensor a = actual.to(at::kDouble);
  at::Tensor b = expected.to(at::kDouble);
  // The suite cuts bits off where the standard (and torch) round to bfloat16: a last place of 2^-7 may differ.
  double relative = expected.scalar_type() == at::kBFloat16 ? 1.0 / 128 : 1e-3;
  if (!at::isclose(a, b, relative, 1e-7, /*equal_nan=*/true).all().item<bool>())
    throw Mismatch(fmt::format("{} differs by up to {}", where, (a - b).abs().max().item<double>()));
}

void compare(const c10::IValue& actual, const c10::IValue& expected, const importer::Program::Port& port,
             const std::string& where) {
  if (!port.sequence) {
    compare(actual.toTensor(), expected.toTensor(), where);
    if (actual.toTensor().scalar_type() != port.type)
      throw Mismatch(fmt::format("{} was announced as {}", where, c10::toString(port.type)));
    return;
  }
  std::vector<at::Tensor> a = actual.toTensorVector(), b = expected.toTensorVector();
  if (a.size() != b.size()) throw Mismatch(fmt::format("{} has {} tensors instead of {}", where, a.size(), b.size()));
  for (std::size_t i = 0; i < a.size(); ++i) compare(a[i], b[i], fmt::format("{}[{}]", where, i));
}

void run_data_set(torch::jit::Module& module, const importer::Program& program, const fs::path& folder) {
  std::vector<c10::IValue> inputs;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    inputs.push_back(read_value(folder / fmt::format("input_{}.pb", i), program.inputs[i]));
  c10::IValue result = module.forward(inputs);
  std::vector<c10::IValue> outputs{result};
  if (result.isTuple()) outputs = result.toTupleRef().elements().vec();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    c10::IValue expected = read_value(folder / fmt::format("output_{}.pb", i), program.outputs[i]);
    compare(outputs[i], expected, program.outputs[i], fmt::format("output {}", i));
  }
}

void run_case(Case& test, const fs::path& folder) {
  try {
    std::string bytes = read_file(folder / "model.onnx");
    ::onnx::ModelProto model;
    if (model.ParseFromString(bytes)) {
      for (const auto& node : model.graph().node()) test.operators.insert(node.op_type());
      for (const auto& import : model.opset_import()) test.opset = std::max<std::int64_t>(test.opset, import.version());
    }
    importer::Program program =
        importer::import_onnx(bytes, folder, "model.onnx", importer::HalfTypes::kept, importer::Ports::any);
    torch::jit::Module module("model");
    importer::build_module(program, "model.onnx", module);
    module.eval();
    torch::NoGradGuard no_grad;
    int sets = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_directory()) continue;
      run_data_set(module, program, entry.path());
      ++sets;
    }
    test.verdict = sets > 0 ? Verdict::passed : Verdict::failed;
    if (sets == 0) test.reason = "has no data";
  } catch (const Error& error) {
    test.reason = error.what();
    // A refusal is only as good as its message: it must name the operator.
    test.verdict = test.reason.find("operator '") != std::string::npos ? Verdict::refused : Verdict::failed;
  } catch (const std::exception& error) {
    test.reason = error.what();
    test.verdict = Verdict::failed;
  }
}

const std::vector<std::string> kSuites = {"node", "pytorch-converted", "pytorch-operator", "simple", "real"};

std::string summary(const std::vector<Case>& cases) {
  std::string text;
  for (const std::string& suite : kSuites) {
    int counts[3] = {0, 0, 0};
    for (const Case& test : cases) {
      if (test.suite == suite) ++counts[static_cast<int>(test.verdict)];
    }
    int total = counts[0] + counts[1] + counts[2];
    if (total == 0) continue;
    text += fmt::format("{}: {} passed, {} refused, {} failed of {}\n", suite, counts[0], counts[1], counts[2], total);
  }
  return text;
}

std::string refused_operator(const std::string& reason) {
  std::size_t start = reason.find("operator '");
  if (start == std::string::npos) return "";
  start += 10;
  return reason.substr(start, reason.find('\'', start) - start);
}

// What follows "node 'name' ", without the file's label and the node's name.
std::string short_reason(const std::string& reason) {
  std::size_t start = reason.find("' of node '");
  if (start == std::string::npos) return reason;
  start = reason.find("' ", start + 11);
  return start == std::string::npos ? reason : reason.substr(start + 2);
}

// A passed case counts for every operator in it, a refused one for the operator it was refused for.
std::string markdown(const std::vector<Case>& cases) {
  struct Row {
    std::set<std::int64_t> opsets;
    int passed = 0;
    int refused = 0;
    std::set<std::string> reasons;
  };
  std::map<std::string, Row> rows;
  for (const Case& test : cases) {
    std::set<std::string> operators = test.operators;
    if (test.verdict == Verdict::refused) operators = {refused_operator(test.reason)};
    for (const std::string& op : operators) {
      Row& row = rows[op];
      row.opsets.insert(test.opset);
      if (test.verdict == Verdict::passed) ++row.passed;
      if (test.verdict != Verdict::refused) continue;
      ++row.refused;
      row.reasons.insert(short_reason(test.reason));
    }
  }
  std::string text = "```\n" + summary(cases) + "```\n";
  text += "\n| operator | opsets seen | passed | refused | cases | why refused |\n|---|---|---|---|---|---|\n";
  for (const auto& [op, row] : rows) {
    std::string opsets, reasons;
    for (std::int64_t opset : row.opsets) opsets += (opsets.empty() ? "" : ", ") + std::to_string(opset);
    for (const std::string& reason : row.reasons) reasons += (reasons.empty() ? "" : "; ") + reason;
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", op, opsets, row.passed, row.refused,
                        row.passed + row.refused, reasons);
  }
  return text;
}

// Replaces what is between the markers of an existing document; a new one is the generated text alone.
void write_markdown(const fs::path& path, const std::string& generated) {
  const std::string begin = "<!-- conformance: begin -->\n", end = "<!-- conformance: end -->";
  std::string text = begin + generated + end + "\n";
  if (fs::exists(path)) {
    std::string old = read_file(path);
    std::size_t from = old.find(begin), to = old.find(end);
    if (from == std::string::npos || to == std::string::npos || to < from)
      bad_input("{}: has no conformance markers", path.string());
    text = old.substr(0, from + begin.size()) + generated + old.substr(to);
  }
  write_file(path, text);
}

int run(int argc, char** argv) {
  fs::path root = "/usr/share/libonnx-testdata/data";
  std::string markdown_file, only;
  bool verbose = false, all = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    bool more = i + 1 < argc;
    if (word == "--root" && more) {
      root = argv[++i];
    } else if (word == "--markdown" && more) {
      markdown_file = argv[++i];
    } else if (word == "--only" && more) {
      only = argv[++i];
    } else if (word == "-v") {
      verbose = true;
    } else if (word == "--all") {
      all = true;
    } else {
      std::cerr << "usage: conformance [--root DIR] [--markdown FILE] [--only SUBSTRING] [--all] [-v]\n"
                   "  --all: a refused case is a failed one\n";
      return 2;
    }
  }
  init_runtime();
  std::vector<Case> cases;
  for (const std::string& suite : kSuites) {
    if (!fs::is_directory(root / suite)) continue;
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(root / suite)) {
      // The real suite of some packages only says where its models can be downloaded.
      if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
    }
    std::sort(folders.begin(), folders.end());
    for (const fs::path& folder : folders) {
      std::string name = folder.filename().string();
      if (name.find(only) == std::string::npos) continue;
      Case test;
      test.suite = suite;
      test.name = name;
      run_case(test, folder);
      if (all && test.verdict == Verdict::refused) test.verdict = Verdict::failed;
      if (verbose)
        std::cout << name << ": " << kVerdicts[static_cast<int>(test.verdict)] << " " << test.reason << std::endl;
      cases.push_back(test);
    }
  }

  std::map<std::string, std::vector<const Case*>> refused;
  int failures = 0;
  for (const Case& test : cases) {
    if (test.verdict == Verdict::failed) {
      std::cout << "FAILED " << test.suite << "/" << test.name << ": " << test.reason.substr(0, 600) << "\n";
      ++failures;
    }
    if (test.verdict == Verdict::refused) refused[refused_operator(test.reason)].push_back(&test);
  }
  for (const auto& [op, tests] : refused) {
    std::set<std::string> reasons;
    for (const Case* test : tests) reasons.insert(short_reason(test->reason));
    std::cout << fmt::format("refused {} ({}):", op, tests.size());
    for (const std::string& reason : reasons) std::cout << " " << reason << ";";
    std::cout << "\n";
  }
  std::cout << summary(cases);
  if (!markdown_file.empty()) write_markdown(markdown_file, markdown(cases));
  return failures > 0 || cases.empty() ? 1 : 0;
}

}  // namespace
}  // namespace galvani

int main(int argc, char** argv) {
  return galvani::run(argc, argv);
}
