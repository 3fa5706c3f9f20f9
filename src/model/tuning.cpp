// Which micro-batch and memory layout run a network fastest here: measured once, remembered in the cache folder.
#include <torch/script.h>

#include <algorithm>
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
constexpr std::int64_t kSmallest = 8;
constexpr std::int64_t kLargest = 128;
constexpr int kRounds = 4;
constexpr double kAsGood = 1.03;

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

struct Candidate {
  Execution form;
  double time;  // seconds per image, the best of its passes
};

double time_pass(const Network::Impl& impl, const Plan& plan, const Execution& form) {
  c10::InferenceMode inference;
  std::vector<std::int64_t> shape = impl.info.input;
  shape.insert(shape.begin(), form.micro_batch);
  at::Tensor images = at::full(shape, 100, at::kByte);
  auto start = std::chrono::steady_clock::now();
  plan.run(impl.prepare(images, form), {});
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return seconds / static_cast<double>(form.micro_batch);
}

// Every form that is worth measuring, each run once so that memory and caches are warm.
std::vector<Candidate> candidates(const Network::Impl& impl, const Plan& plan) {
  std::vector<Candidate> result;
  bool try_channels_last = !impl.card.preprocess.channels_last;  // then the model's own input is already last
  std::int64_t wanted = impl.wanted_micro_batch;
  for (std::int64_t size = wanted > 0 ? wanted : kSmallest; size <= std::max(kLargest, wanted); size *= 2) {
    double time = time_pass(impl, plan, {size, false});
    result.push_back({{size, false}, time});
    if (try_channels_last) {
      try {
        result.push_back({{size, true}, time_pass(impl, plan, {size, true})});
      } catch (const std::exception&) {
        // A view of activations that lie channels-last is refused; such a network runs in planes only.
        try_channels_last = false;
      }
    }
    if (wanted > 0 || time * static_cast<double>(size) * 2 > kLongestPass) break;
  }
  return result;
}

// Rounds over all candidates, so that a disturbance hits them alike and the best pass of each is undisturbed.
Execution measure_best(const Network::Impl& impl) {
  std::shared_ptr<const Plan> plan = impl.executor->plan({}, {}, Executor::Form::whole_final);
  std::vector<Candidate> all = candidates(impl, *plan);
  for (int round = 0; round < kRounds; ++round) {
    for (Candidate& c : all) c.time = std::min(c.time, time_pass(impl, *plan, c.form));
  }
  double fastest = 1e30;
  for (const Candidate& c : all) {
    fastest = std::min(fastest, c.time);
    log::debug("micro-batch {}{}: {:.1f} images/s", c.form.micro_batch, c.form.channels_last ? " channels last" : "",
               1 / c.time);
  }
  // The smallest that is as good as the fastest: it needs the least memory.
  auto good = std::find_if(all.begin(), all.end(), [&](const Candidate& c) { return c.time <= fastest * kAsGood; });
  return good->form;
}

}  // namespace

Execution tuned_execution(Network::Impl& impl) {
  if (impl.info.fixed_batch > 0) return {impl.info.fixed_batch, false};
  std::string shape;
  for (std::int64_t n : impl.info.input) shape += std::to_string(n) + ",";
  shape += std::to_string(impl.wanted_micro_batch);
  std::string key = sha256(impl.executor->structure() + shape + processor_name()).substr(0, 32);
  json record = read_record();
  if (auto it = record.find(key); it != record.end() && it->is_object()) {
    Execution known{it->value("micro_batch", std::int64_t{0}), it->value("channels_last", false)};
    bool sane = impl.wanted_micro_batch > 0 ? known.micro_batch == impl.wanted_micro_batch
                                            : known.micro_batch >= 1 && known.micro_batch <= kLargest;
    if (sane) return known;
  }
  Execution choice = measure_best(impl);
  log::debug("micro-batch of {}: {}{}", impl.info.path, choice.micro_batch,
             choice.channels_last ? ", channels last" : "");
  remember(key, choice);
  return choice;
}

}  // namespace galvani
