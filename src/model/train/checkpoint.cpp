#include "model/train/checkpoint.h"

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/script.h>

#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

constexpr std::string_view kMagic = "galvani checkpoint 1\n";
constexpr std::size_t kHashLength = 64;

c10::List<double> pack(const std::vector<EpochReport>& reports) {
  c10::List<double> list;
  for (const EpochReport& r : reports) {
    for (double v : {static_cast<double>(r.epoch), r.rate, r.loss, r.train_accuracy, r.accuracy, r.seconds})
      list.push_back(v);
  }
  return list;
}

std::vector<EpochReport> unpack(const c10::List<double>& list) {
  std::vector<EpochReport> reports;
  for (std::size_t i = 0; i + 6 <= list.size(); i += 6)
    reports.push_back(
        {static_cast<std::int64_t>(list[i]), list[i + 1], list[i + 2], list[i + 3], list[i + 4], list[i + 5]});
  return reports;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& c) {
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& t : c.tensors) tensors.push_back(t.detach());
  auto content = c10::ivalue::Tuple::create({c.settings, c.epoch, c.step, c.updates, c.loss_sum, c.correct, c.seen,
                                             c.best_epoch, pack(c.reports), tensors, c.stopped});
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
  c.epoch = parts.at(1).toInt();
  c.step = parts.at(2).toInt();
  c.updates = parts.at(3).toInt();
  c.loss_sum = parts.at(4).toDouble();
  c.correct = parts.at(5).toInt();
  c.seen = parts.at(6).toInt();
  c.best_epoch = parts.at(7).toInt();
  c.reports = unpack(parts.at(8).toDoubleList());
  c.tensors = parts.at(9).toTensorVector();
  c.stopped = parts.at(10).toStringRef();
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
