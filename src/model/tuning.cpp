// Which micro-batch and memory layout run a network fastest here: measured once, remembered in the cache folder.
#include <torch/script.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/log.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

using nlohmann::json;

constexpr double kLongestPass = 0.25;  // seconds; a larger micro-batch makes a campaign's steps too coarse
constexpr std::int64_t kSmallest = 4;
constexpr std::int64_t kLargest = 128;
constexpr int kRepeats = 3;
constexpr double kWorthwhile = 0.97;  // a change must save 3% to count as faster

std::filesystem::path record_path() {
  return cache_folder() / "tuning.json";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line;
  }
  return "";
}

json read_record() {
  std::error_code ignored;
  if (!std::filesystem::exists(record_path(), ignored)) return json::object();
  json record = json::parse(read_file(record_path(), 1 << 24), nullptr, /*allow_exceptions=*/false);
  return record.is_object() ? record : json::object();
}

void remember(const std::string& key, const Execution& choice) {
  try {
    std::filesystem::create_directories(cache_folder());
    json record = read_record();
    record[key] = {{"micro_batch", choice.micro_batch}, {"channels_last", choice.channels_last}};
    write_file(record_path(), record.dump(1) + "\n");
  } catch (const std::exception& e) {
    log::warn("the choice of micro-batch cannot be remembered, so another run may choose another: {}", e.what());
  }
}

// Seconds per image, the best of a few passes.
double measure(const Network::Impl& impl, const Plan& plan, const Execution& form) {
  c10::InferenceMode inference;
  at::Tensor images =
      at::full({form.micro_batch, impl.info.input[0], impl.info.input[1], impl.info.input[2]}, 100, at::kByte);
  double best = 1e30;
  for (int i = 0; i <= kRepeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    plan.run(impl.prepare(images, form), {});
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0 || seconds > kLongestPass) best = std::min(best, seconds);
    if (seconds > kLongestPass) break;
  }
  return best / static_cast<double>(form.micro_batch);
}

Execution measure_best(const Network::Impl& impl) {
  std::shared_ptr<const Plan> plan = impl.executor->plan({}, {}, Executor::Form::whole_final);
  bool try_channels_last = !impl.card.preprocess.channels_last;  // then the model's own input is already last
  Execution best{kSmallest, false};
  double best_time = 1e30;
  for (std::int64_t size = kSmallest; size <= kLargest; size *= 2) {
    double time = 1e30;
    for (bool channels_last : {false, true}) {
      if (channels_last && !try_channels_last) continue;
      Execution form{size, channels_last};
      double t = 1e30;
      try {
        t = measure(impl, *plan, form);
      } catch (const std::exception&) {
        // A view of activations that lie channels-last is refused; such a network runs in planes only.
        if (!channels_last) throw;
        try_channels_last = false;
        continue;
      }
      time = std::min(time, t);
      log::debug("micro-batch {}{}: {:.1f} images/s", size, channels_last ? " channels last" : "", 1 / t);
      if (t < best_time * kWorthwhile) {
        best_time = t;
        best = form;
      }
    }
    if (time * static_cast<double>(size) * 2 > kLongestPass) break;
  }
  return best;
}

}  // namespace

Execution tuned_execution(Network::Impl& impl) {
  if (impl.info.fixed_batch > 0) return {impl.info.fixed_batch, false};
  std::string shape;
  for (std::int64_t n : impl.info.input) shape += std::to_string(n) + ",";
  std::string key = sha256(impl.executor->structure() + shape + processor_name()).substr(0, 32);
  json record = read_record();
  if (auto it = record.find(key); it != record.end() && it->is_object()) {
    Execution known{it->value("micro_batch", std::int64_t{0}), it->value("channels_last", false)};
    if (known.micro_batch >= 1 && known.micro_batch <= kLargest) return known;
  }
  Execution choice = measure_best(impl);
  log::debug("micro-batch of {}: {}{}", impl.info.path, choice.micro_batch,
             choice.channels_last ? ", channels last" : "");
  remember(key, choice);
  return choice;
}

}  // namespace galvani
