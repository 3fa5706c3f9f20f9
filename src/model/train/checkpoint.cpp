#include "model/train/checkpoint.h"

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/script.h>

#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

constexpr std::string_view kMagic = "galvani checkpoint 2\n";
constexpr std::size_t kHashLength = 64;

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& c) {
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& t : c.tensors) tensors.push_back(t.detach());
  const TrainState& state = c.state;
  auto content = c10::ivalue::Tuple::create({c.settings, state.epoch, state.step,
                                             c10::List<std::int64_t>(state.updates), c10::List<double>(state.sums),
                                             state.stopped, c10::List<double>(state.numbers), state.kept, tensors});
  std::vector<char> bytes = torch::jit::pickle_save(content);
  std::string payload(bytes.begin(), bytes.end());
  write_file(path, std::string(kMagic) + sha256(payload) + payload);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  std::string bytes = read_file(path);
  std::string_view text = bytes;
  // The hash is checked before LibTorch reads a byte: its unpickler trusts what it is given.
  bool whole = text.size() > kMagic.size() + kHashLength && text.substr(0, kMagic.size()) == kMagic &&
               text.substr(kMagic.size(), kHashLength) == sha256(text.substr(kMagic.size() + kHashLength));
  if (!whole) bad_input("{}: is damaged or not a checkpoint of this version; delete it to start anew", path.string());
  text.remove_prefix(kMagic.size() + kHashLength);
  Checkpoint c;
  auto parts = torch::jit::pickle_load(std::vector<char>(text.begin(), text.end())).toTuple()->elements().vec();
  c.settings = parts.at(0).toStringRef();
  c.state.epoch = parts.at(1).toInt();
  c.state.step = parts.at(2).toInt();
  c.state.updates = parts.at(3).toIntVector();
  c.state.sums = parts.at(4).toDoubleVector();
  c.state.stopped = parts.at(5).toStringRef();
  c.state.numbers = parts.at(6).toDoubleVector();
  c.state.kept = parts.at(7).toTensorVector();
  c.tensors = parts.at(8).toTensorVector();
  return c;
}

std::string difference(const std::string& there, const std::string& now) {
  std::istringstream a(there), b(now);
  std::string line_a, line_b;
  while (true) {
    bool has_a = static_cast<bool>(std::getline(a, line_a));
    bool has_b = static_cast<bool>(std::getline(b, line_b));
    if (!has_a && !has_b) return "";
    if (!has_a) line_a = "nothing";
    if (!has_b) line_b = "nothing";
    if (line_a != line_b) return fmt::format("{} there, {} now", line_a, line_b);
  }
}

}  // namespace galvani
