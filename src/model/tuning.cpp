// Which micro-batch, memory layout and kind of layers run a network fastest here: measured once, in processor time, so
// that what else runs here matters little, and remembered in the cache folder.
#include <torch/script.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/log.h"
#include "galvani/base/nesting.h"
#include "galvani/base/parallel.h"
#include "galvani/base/runtime.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

using nlohmann::json;

// Of the record: what another version of this program measured in another way is measured again.
constexpr int kVersion = 2;
constexpr double kLongestPass = 0.25;  // seconds; a larger micro-batch makes a campaign's steps too coarse
constexpr std::int64_t kSmallest = 8;
constexpr std::int64_t kLargest = 128;
constexpr int kRounds = 4;
constexpr double kEnough = 1;  // seconds of measuring, after which there is no further round
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

json empty_record() {
  return {{"version", kVersion}, {"choices", json::object()}};
}

json read_record() {
  std::error_code ignored;
  if (!std::filesystem::exists(record_path(), ignored)) return empty_record();
  json record = parse_json<json>(read_file(record_path(), 1 << 24));
  bool known =
      record.is_object() && record.value("version", json()) == kVersion && record.value("choices", json()).is_object();
  return known ? record : empty_record();
}

void remember(const std::string& key, const Execution& choice) {
  try {
    std::filesystem::create_directories(cache_folder());
    json record = read_record();
    record["choices"][key] = {
        {"micro_batch", choice.micro_batch}, {"channels_last", choice.channels_last}, {"fused", choice.fused}};
    write_file(record_path(), record.dump(1) + "\n");
  } catch (const std::exception& e) {
    log::warn("the choice of micro-batch cannot be remembered, so another run may choose another: {}", e.what());
  }
}

struct Candidate {
  Execution form;
  double time;  // seconds per image, the best of its passes
};

double time_pass(const Network::Impl& impl, const Execution& form) {
  c10::InferenceMode inference;
  std::shared_ptr<const Plan> plan = impl.executor->plan({{}, {}, Executor::Form::whole_final, {}, form.fused});
  std::vector<std::int64_t> shape = impl.info.input;
  shape.insert(shape.begin(), form.micro_batch);
  at::Tensor images = at::full(shape, 100, at::kByte);
  double start = thread_seconds();
  plan->run(impl.prepare(images, form), {});
  return (thread_seconds() - start) / static_cast<double>(form.micro_batch);
}

// Whether fused layers give what the graph gives, for every tap. They need not, for a graph that does something
// unusual. oneDNN's activations make numbers of what is none, so a network whose values come near the largest number,
// and may leave the range on another image, runs as it is.
bool fused_agrees(const Network::Impl& impl) {
  constexpr double kTolerance = 1e-4;  // of the largest value
  constexpr double kTooLarge = 1e25;
  std::vector<int> every;
  for (std::size_t i = 0; i < impl.taps.size(); ++i) every.push_back(static_cast<int>(i));
  c10::InferenceMode inference;
  std::int64_t batch = impl.info.fixed_batch > 0 ? impl.info.fixed_batch : 2;
  at::Tensor input = impl.prepare(probe_images(batch, impl.info.input), {});
  auto values = [&](const std::vector<int>& taps, bool fused) {
    return impl.executor->plan({taps, {}, Executor::Form::whole_final, {}, fused})->run(input, {});
  };
  auto close = [&](const at::Tensor& have, const at::Tensor& want) {
    if (want.sizes() != have.sizes()) return false;
    double largest = want.numel() == 0 ? 0 : want.abs().max().item<double>();
    return largest < kTooLarge && at::allclose(have, want, 0, kTolerance * largest);
  };
  std::vector<at::Tensor> want = values(every, false);
  try {
    // Taps keep layers apart that are one without them.
    bool same = close(values({}, true)[0], want[0]);
    std::vector<at::Tensor> have = values(every, true);
    for (std::size_t i = 0; i < want.size(); ++i) same = same && close(have[i], want[i]);
    return same;
  } catch (const std::exception& e) {
    log::debug("{}: layers cannot be fused: {}", impl.info.path, impl.executor->explain(e));
    return false;
  }
}

bool can_be_fused(const Network::Impl& impl) {
  return impl.may_fuse && impl.executor->fusible() && fused_agrees(impl);
}

// Every form that is worth measuring, each run once so that memory and caches are warm.
std::vector<Candidate> candidates(const Network::Impl& impl) {
  std::vector<Candidate> result;
  bool try_fused = can_be_fused(impl);
  bool try_channels_last = !impl.card.preprocess.channels_last;  // then the model's own input is already last
  std::int64_t wanted = impl.wanted_micro_batch;
  for (std::int64_t size = wanted > 0 ? wanted : kSmallest; size <= std::max(kLargest, wanted); size *= 2) {
    if (try_fused) result.push_back({{size, false, true}, time_pass(impl, {size, false, true})});
    double time = time_pass(impl, {size, false});
    result.push_back({{size, false}, time});
    if (try_channels_last) {
      try {
        result.push_back({{size, true}, time_pass(impl, {size, true})});
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
  std::vector<Candidate> all = candidates(impl);
  double spent = 0;
  for (int round = 0; round < kRounds && spent < kEnough; ++round) {
    for (Candidate& c : all) {
      double time = time_pass(impl, c.form);
      spent += time * static_cast<double>(c.form.micro_batch);
      c.time = std::min(c.time, time);
    }
  }
  double fastest = 1e30;
  for (const Candidate& c : all) {
    fastest = std::min(fastest, c.time);
    log::debug("micro-batch {}{}{}: {:.1f} images/s", c.form.micro_batch, c.form.channels_last ? " channels last" : "",
               c.form.fused ? " fused" : "", 1 / c.time);
  }
  // The smallest that is as good as the fastest: it needs the least memory.
  auto good = std::find_if(all.begin(), all.end(), [&](const Candidate& c) { return c.time <= fastest * kAsGood; });
  Execution choice = good->form;
  if (!choice.fused) return choice;
  // The layout is that of passes with gradients, which are not fused.
  const Candidate* plain = nullptr;
  for (const Candidate& c : all) {
    bool better =
        c.form.micro_batch == choice.micro_batch && !c.form.fused && (plain == nullptr || c.time < plain->time);
    if (better) plain = &c;
  }
  choice.channels_last = plain != nullptr && plain->form.channels_last;
  return choice;
}

}  // namespace

Execution tuned_execution(Network::Impl& impl) {
  if (impl.info.fixed_batch > 0) return {impl.info.fixed_batch, false, can_be_fused(impl)};
  std::string shape;
  for (std::int64_t n : impl.info.input) shape += std::to_string(n) + ",";
  shape += std::to_string(impl.wanted_micro_batch);
  if (impl.may_fuse) shape += ",fused";
  std::string key = sha256(impl.executor->structure() + shape + processor_name() + find_blas_kernels()).substr(0, 32);
  json known_choices = read_record()["choices"];
  if (auto it = known_choices.find(key); it != known_choices.end() && it->is_object()) {
    Execution known{it->value("micro_batch", std::int64_t{0}), it->value("channels_last", false),
                    it->value("fused", false)};
    bool sane = impl.wanted_micro_batch > 0 ? known.micro_batch == impl.wanted_micro_batch
                                            : known.micro_batch >= 1 && known.micro_batch <= kLargest;
    // The record is of the architecture; these weights may be others.
    known.fused = known.fused && can_be_fused(impl);
    if (sane) return known;
  }
  Execution choice = measure_best(impl);
  log::debug("micro-batch of {}: {}{}{}", impl.info.path, choice.micro_batch,
             choice.channels_last ? ", channels last" : "", choice.fused ? ", fused" : "");
  remember(key, choice);
  return choice;
}

}  // namespace galvani
