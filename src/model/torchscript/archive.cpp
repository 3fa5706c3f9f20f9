#include "model/torchscript/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <caffe2/serialize/inline_container.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/script.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/limits.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "model/graph_tools.h"
#include "model/torchscript/attribute_check.h"
#include "model/torchscript/code_check.h"
#include "model/torchscript/pickle_check.h"

namespace galvani::torchscript {
namespace {

constexpr const char* kCardFile = "galvani.json";
constexpr std::uint64_t kExpansionLimit = 64;  // of a compressed archive, times its size
constexpr std::size_t kMostRecords = 200000;

using Records = std::map<std::string, std::string>;

// LibTorch does not check the zip's checksums. libarchive does.
Records read_records(const std::string& bytes, const std::string& label) {
  std::unique_ptr<archive, decltype(&archive_read_free)> zip(archive_read_new(), archive_read_free);
  archive_read_support_format_zip_seekable(zip.get());
  auto damaged = [&] {
    const char* why = archive_error_string(zip.get());
    bad_input("{}: is not a readable TorchScript archive: {}", label, why == nullptr ? "damaged" : why);
  };
  if (archive_read_open_memory(zip.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) damaged();
  Records records;
  std::uint64_t total = 0;
  const std::uint64_t limit = bytes.size() * kExpansionLimit;
  std::string root;
  archive_entry* entry = nullptr;
  int status = ARCHIVE_OK;
  while ((status = archive_read_next_header(zip.get(), &entry)) == ARCHIVE_OK) {
    const char* path = archive_entry_pathname(entry);
    std::string name = path == nullptr ? "" : path;
    std::size_t slash = name.find('/');
    if (slash == std::string::npos || records.size() >= kMostRecords)
      bad_input("{}: is a zip archive but not a TorchScript model", label);
    if (root.empty()) root = name.substr(0, slash + 1);
    if (name.compare(0, root.size(), root) != 0 || name.find("..") != std::string::npos)
      bad_input("{}: is a zip archive but not a TorchScript model", label);
    std::string content;
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    while ((status = archive_read_data_block(zip.get(), &block, &size, &offset)) == ARCHIVE_OK) {
      total += size;
      if (total > limit) bad_input("{}: expands to more than {}", label, format_bytes(limit));
      content.append(static_cast<const char*>(block), size);
    }
    if (status != ARCHIVE_EOF) damaged();
    if (!records.emplace(name.substr(root.size()), std::move(content)).second)
      bad_input("{}: has the record '{}' twice", label, printable(name));
  }
  if (status != ARCHIVE_EOF) damaged();
  // Where newer operators are used, the version has another place.
  if (auto moved = records.find(".data/version"); moved != records.end()) records["version"] = moved->second;
  for (const char* needed : {"data.pkl", "constants.pkl", "version"}) {
    if (records.count(needed) == 0)
      bad_input(
          "{}: is not a TorchScript model: it has no {} (a file written by torch.save needs torch.jit.script or "
          "torch.jit.trace first)",
          label, needed);
  }
  return records;
}

bool is_code(const std::string& name) {
  return name.rfind("code/", 0) == 0 && name.size() > 3 && name.compare(name.size() - 3, 3, ".py") == 0;
}

void check_pickles(const Records& records, const std::string& label) {
  auto check = [&](const char* archive, PickleRoot root) {
    auto storage_size = [&](const std::string& key) -> std::optional<std::uint64_t> {
      auto record = records.find(std::string(archive) + "/" + key);
      if (record == records.end()) return std::nullopt;
      return record->second.size();
    };
    std::string name = std::string(archive) + ".pkl";
    check_pickle(records.at(name), root, storage_size, label + ": its record " + name);
  };
  check("data", PickleRoot::object);
  check("constants", PickleRoot::tuple);
}

// Not, among others, the debug_pkl records: pickles too, which only serve LibTorch's error messages.
bool is_needed(const std::string& name) {
  if (name == "data.pkl" || name == "constants.pkl") return true;
  return is_code(name) || name.rfind("data/", 0) == 0 || name.rfind("constants/", 0) == 0;
}

std::uint64_t version_of(const Records& records, const std::string& label) {
  char* end = nullptr;
  const std::string& text = records.at("version");
  unsigned long long version = std::strtoull(text.c_str(), &end, 10);
  if (end == text.c_str() || version > 1000) bad_input("{}: its version is '{}'", label, printable(text));
  return version;
}

// What was checked is written anew, so that LibTorch's own zip reader meets a sound archive.
std::string repack(const Records& records, const std::string& label) {
  std::string result;
  caffe2::serialize::PyTorchStreamWriter writer([&result](const void* data, std::size_t n) {
    result.append(static_cast<const char*>(data), n);
    return n;
  });
  writer.setMinVersion(version_of(records, label));
  for (const auto& [name, content] : records) {
    if (is_needed(name)) writer.writeRecord(name, content.data(), content.size());
  }
  writer.writeEndOfFile();
  return result;
}

// A hostile pickle can claim sizes beyond the storage it comes with.
void check_tensor(const at::Tensor& tensor, const std::string& name, const std::string& label) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0) return;
  std::int64_t last = tensor.storage_offset();
  bool sane = last >= 0;
  for (std::int64_t d = 0; sane && d < tensor.dim(); ++d) {
    std::int64_t span = 0;
    sane = tensor.stride(d) >= 0 && !__builtin_mul_overflow(tensor.size(d) - 1, tensor.stride(d), &span) &&
           !__builtin_add_overflow(last, span, &last);
  }
  auto items = static_cast<std::int64_t>(tensor.storage().nbytes() / tensor.itemsize());
  if (!sane || last >= items) bad_input("{}: tensor '{}' is larger than its storage", label, printable(name));
}

void check_constants(const torch::jit::Block* block, const std::string& label) {
  for (const torch::jit::Node* node : block->nodes()) {
    if (node->kind() == c10::prim::Constant && node->hasAttribute(c10::attr::value) &&
        node->kindOf(c10::attr::value) == torch::jit::AttributeKind::t)
      check_tensor(node->t(c10::attr::value), "constant", label);
    for (const torch::jit::Block* inner : node->blocks()) check_constants(inner, label);
  }
}

// Whoever made the file himself may use any operator.
bool is_trusted() {
  const char* said = std::getenv("GALVANI_TRUST_MODELS");
  return said != nullptr && std::string(said) == "1";
}

struct Code {
  std::string name;
  std::string text;
};

// Nothing of the file runs in here: what would is refused in the source text, before LibTorch compiles it.
torch::jit::Module load_checked(const std::string& archive, const std::vector<Code>& code, const std::string& label) {
  bool trusted = is_trusted();
  for (const Code& part : code) {
    if (!trusted) check_source(part.text, part.name, label);
  }
  std::istringstream stream(archive);
  try {
    torch::jit::Module module = torch::jit::load(stream, at::kCPU);
    check_attributes(module, label);
    if (!trusted) check_operators(module, label);
    return module;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    bad_input("{}: takes too much memory to be loaded", label);
  } catch (const std::exception& e) {
    bad_input("{}: LibTorch cannot load it: {}", label, first_line(e.what()));
  }
}

// LibTorch's parser and compiler can crash on hostile code, or never end. Where that would take the process with it, a
// child tries first, so that only the child dies; what it throws is left for the real load to report.
void try_in_child(const std::string& archive, const std::vector<Code>& code, const std::string& label) {
  constexpr unsigned kLongestLoad = 6;         // seconds of computing
  constexpr std::size_t kPerSecond = 4 << 20;  // bytes of a large file that earn it a second more
  constexpr unsigned kLongestWait = 10;        // times that by the clock
  unsigned seconds = kLongestLoad + static_cast<unsigned>(archive.size() / kPerSecond);
  pid_t child = ::fork();
  if (child < 0) fail(ErrorCode::environment, "{}: cannot be checked: {}", label, std::strerror(errno));
  if (child == 0) {
    int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM, SIGXCPU, SIGINT, SIGTERM, SIGHUP})
      ::signal(signal, SIG_DFL);
    rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::setrlimit(RLIMIT_FSIZE, &none);
    rlimit computing{seconds, seconds + 1};
    ::setrlimit(RLIMIT_CPU, &computing);
    ::alarm(seconds * kLongestWait);
    try {
      load_checked(archive, code, label);
    } catch (...) {
    }
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check_interrupt();
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGXCPU))
    bad_input("{}: LibTorch does not finish loading it within {} s of computing", label, seconds);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) bad_input("{}: LibTorch crashes when it loads it", label);
}

}  // namespace

bool is_archive(const std::string& bytes) {
  return bytes.rfind("PK\x03\x04", 0) == 0;
}

void load_module(const std::string& bytes, const std::string& label, torch::jit::Module& module, std::string& card) {
  Records records = read_records(bytes, label);
  check_pickles(records, label);
  std::vector<Code> code;
  for (const auto& [name, text] : records) {
    if (is_code(name)) code.push_back({name, text});
  }
  std::string sound = repack(records, label);
  if (auto it = records.find(std::string("extra/") + kCardFile); it != records.end()) card = it->second;
  records.clear();
  if (is_trusted()) log::warn("{}: its operators are not checked, since GALVANI_TRUST_MODELS is set", label);
  if (!crashes_are_handled()) try_in_child(sound, code, label);
  module = load_checked(sound, code, label);
  if (!module.find_method("forward")) bad_input("{}: has no method 'forward'", label);
  for (const auto& item : module.named_attributes(/*recurse=*/true)) {
    if (item.value.isTensor()) check_tensor(item.value.toTensor(), item.name, label);
  }
  for (const torch::jit::Module& part : module.modules()) {
    for (const torch::jit::Method& method : part.get_methods()) check_constants(method.graph()->block(), label);
  }
}

void check_graph(torch::jit::Graph& frozen, const std::string& label) {
  if (!is_trusted()) check_frozen(frozen, label);
}

std::string save_module(torch::jit::Module& module, const std::string& card) {
  std::ostringstream stream;
  module.save(stream, {{kCardFile, card}});
  return stream.str();
}

}  // namespace galvani::torchscript
