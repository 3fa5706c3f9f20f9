#include "galvani/report/replay.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_map>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/fuzz/references.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr std::size_t kReplayChunk = 256;

// Canonical verdicts: every image alone. `seeds` are those they come from.
std::vector<std::int64_t> judge(Network& network, const SeedReferences& references,
                                const std::vector<at::Tensor>& images, const std::vector<std::int64_t>& seeds) {
  if (images.empty()) return {};
  Request alone;
  alone.alone = true;
  alone.references = references.of(seeds);
  at::Tensor labels = verdicts(network.run(at::stack(images), alone).logits);
  return {labels.data_ptr<std::int64_t>(), labels.data_ptr<std::int64_t>() + labels.numel()};
}

// Which seeds a model gets right.
std::unordered_map<std::int64_t, bool> judge_seeds(const CampaignReader& reader, Network& network,
                                                   const SeedReferences& references) {
  std::unordered_map<std::int64_t, bool> right;
  std::vector<SeedRecord> seeds = reader.seeds();
  for (std::size_t first = 0; first < seeds.size(); first += kReplayChunk) {
    std::vector<at::Tensor> images;
    std::size_t end = std::min(seeds.size(), first + kReplayChunk);
    std::vector<std::int64_t> ids;
    for (std::size_t i = first; i < end; ++i) {
      images.push_back(reader.image(seeds[i].id));
      ids.push_back(seeds[i].id);
    }
    std::vector<std::int64_t> labels = judge(network, references, images, ids);
    for (std::size_t i = first; i < end; ++i) right[seeds[i].id] = labels[i - first] == seeds[i].label;
  }
  return right;
}

// `judged`: verdicts by file, for repetitions share the file of the first.
void replay_chunk(const CampaignReader& reader, Network& network, const SeedReferences& references,
                  const std::vector<FaultRecord>& faults, std::unordered_map<std::string, std::int64_t>& judged,
                  std::unordered_map<std::int64_t, bool>* seed_right, Replay& result) {
  std::vector<at::Tensor> read(faults.size());
  std::vector<std::string> problems(faults.size());
  workers().run(static_cast<std::int64_t>(faults.size()), [&](std::int64_t index, int) {
    auto i = static_cast<std::size_t>(index);
    if (judged.count(faults[i].file) != 0) return;
    try {
      read[i] = reader.image(faults[i]);
    } catch (const Error& e) {
      problems[i] = e.what();
    }
  });
  std::vector<at::Tensor> images;
  std::vector<const std::string*> files;
  std::vector<std::int64_t> seeds;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (!read[i].defined() || !judged.emplace(faults[i].file, 0).second) continue;
    images.push_back(read[i]);
    files.push_back(&faults[i].file);
    seeds.push_back(faults[i].seed);
  }
  std::vector<std::int64_t> labels = judge(network, references, images, seeds);
  for (std::size_t i = 0; i < labels.size(); ++i) judged[*files[i]] = labels[i];
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const FaultRecord& fault = faults[i];
    auto verdict = judged.find(fault.file);
    if (verdict == judged.end()) {
      result.unreadable.push_back(problems[i]);
      continue;
    }
    bool fails = verdict->second != fault.label;
    result.fail += fails ? 1 : 0;
    result.as_before += verdict->second == fault.predicted ? 1 : 0;
    result.not_a_number += verdict->second == kNotANumber ? 1 : 0;
    if (!fails) result.healed.push_back(fault.file);
    result.each.push_back({fault.id, fault.seed, fault.file, fault.label, fault.predicted, verdict->second});
    if (seed_right != nullptr && (*seed_right)[fault.seed]) {
      ++result.seed_right;
      result.seed_right_fail += fails ? 1 : 0;
    }
  }
  result.faults += static_cast<std::int64_t>(faults.size());
}

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

std::unique_ptr<Network> load_campaign_model(const CampaignRecord& record) {
  Network::Options options;
  options.flags = record.preprocess;
  options.execution = record.execution;
  options.any_task = true;
  std::unique_ptr<Network> network = Network::load(record.model, options);
  if (network->info().sha256 != record.model_sha256)
    bad_input("{}: is not the model of the campaign any more; its content has changed", record.model);
  return network;
}

double Replay::transfer_rate() const {
  return share_of(fail, faults);
}

double Replay::seed_right_transfer_rate() const {
  return share_of(seed_right_fail, seed_right);
}

Replay replay_faults(const CampaignReader& reader, Network& network) {
  Replay result;
  result.same_model = network.info().sha256 == reader.record().model_sha256;
  std::unordered_map<std::int64_t, bool> seed_right;
  SeedReferences references(reader, network);
  if (!result.same_model) {
    std::vector<SeedRecord> seeds = reader.seeds();
    if (!seeds.empty()) check_fits(network, reader.image(seeds[0].id).unsqueeze(0), reader.folder().string());
    if (network.info().classes != reader.classes())
      bad_usage("{}: knows {} classes, the campaign's model {}", network.info().path, network.info().classes,
                reader.classes());
    seed_right = judge_seeds(reader, network, references);
  }
  std::unordered_map<std::string, std::int64_t> judged;
  Progress progress("replaying", reader.counters().faults, "faults");
  FaultFilter filter;
  filter.most = kReplayChunk;
  while (true) {
    check_interrupt();
    std::vector<FaultRecord> faults = reader.faults(filter);
    if (faults.empty()) break;
    replay_chunk(reader, network, references, faults, judged, result.same_model ? nullptr : &seed_right, result);
    progress.advance(static_cast<std::int64_t>(faults.size()));
    filter.first = faults.back().id + 1;
  }
  progress.finish();
  return result;
}

Figures figures_of(const Replay& replay) {
  auto n = [](auto count) { return static_cast<double>(count); };
  return {{"faults", n(replay.faults)},
          {"fail", n(replay.fail)},
          {"as-before", n(replay.as_before)},
          {"not-a-number", n(replay.not_a_number)},
          {"not-failing", n(replay.healed.size())},
          {"unreadable", n(replay.unreadable.size())},
          {"transfer-rate", replay.transfer_rate()},
          {"seed-right-transfer-rate", replay.seed_right_transfer_rate()}};
}

}  // namespace galvani
