#include <ATen/ATen.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "campaign_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/json_text.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kChunk = 256;
constexpr std::size_t kMostShown = 20;

struct ReplayFlags {
  std::string folder;
  ModelFlags other;
};

struct Replay {
  std::int64_t faults = 0;
  std::int64_t fail = 0;          // the verdict is not the seed's label
  std::int64_t as_before = 0;     // and it is the same one
  std::int64_t not_a_number = 0;  // and it is no class
  std::int64_t seed_right = 0;    // of another model: it gets the fault's seed right
  std::int64_t seed_right_fail = 0;
  std::vector<std::string> unreadable;
  std::vector<std::string> healed;
};

// Canonical verdicts: every image alone.
std::vector<std::int64_t> judge(Network& network, const std::vector<at::Tensor>& images) {
  if (images.empty()) return {};
  Request alone;
  alone.alone = true;
  at::Tensor labels = verdicts(network.run(at::stack(images), alone).logits);
  return {labels.data_ptr<std::int64_t>(), labels.data_ptr<std::int64_t>() + labels.numel()};
}

// Which seeds a model gets right.
std::unordered_map<std::int64_t, bool> judge_seeds(const CampaignReader& reader, Network& network) {
  std::unordered_map<std::int64_t, bool> right;
  std::vector<SeedRecord> seeds = reader.seeds();
  for (std::size_t first = 0; first < seeds.size(); first += kChunk) {
    std::vector<at::Tensor> images;
    std::size_t end = std::min(seeds.size(), first + kChunk);
    for (std::size_t i = first; i < end; ++i) images.push_back(reader.image(seeds[i].id));
    std::vector<std::int64_t> labels = judge(network, images);
    for (std::size_t i = first; i < end; ++i) right[seeds[i].id] = labels[i - first] == seeds[i].label;
  }
  return right;
}

void replay_chunk(const CampaignReader& reader, Network& network, const std::vector<FaultRecord>& faults,
                  std::unordered_map<std::int64_t, bool>* seed_right, Replay& result) {
  std::vector<at::Tensor> read(faults.size());
  std::vector<std::string> problems(faults.size());
  workers().run(static_cast<std::int64_t>(faults.size()), [&](std::int64_t index, int) {
    auto i = static_cast<std::size_t>(index);
    try {
      read[i] = reader.image(faults[i]);
    } catch (const Error& e) {
      problems[i] = e.what();
    }
  });
  std::vector<at::Tensor> images;
  std::vector<const FaultRecord*> records;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (read[i].defined()) {
      images.push_back(read[i]);
      records.push_back(&faults[i]);
    } else {
      result.unreadable.push_back(problems[i]);
    }
  }
  std::vector<std::int64_t> labels = judge(network, images);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const FaultRecord& fault = *records[i];
    bool fails = labels[i] != fault.label;
    result.fail += fails ? 1 : 0;
    result.as_before += labels[i] == fault.predicted ? 1 : 0;
    result.not_a_number += labels[i] == kNotANumber ? 1 : 0;
    if (!fails) result.healed.push_back(fault.file);
    if (seed_right != nullptr && (*seed_right)[fault.seed]) {
      ++result.seed_right;
      result.seed_right_fail += fails ? 1 : 0;
    }
  }
  result.faults += static_cast<std::int64_t>(faults.size());
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void run(Common& common, ReplayFlags& flags) {
  CampaignReader reader(flags.folder);
  bool other = !flags.other.model.empty();
  std::unique_ptr<Network> network;
  if (other) {
    std::optional<SampleType> type;
    std::vector<SeedRecord> seeds = reader.seeds();
    if (!seeds.empty()) {
      at::Tensor seed = reader.image(seeds[0].id);
      type = SampleType::image(seed.size(0), seed.size(1), seed.size(2));
    }
    network = flags.other.load(type);
    if (type) check_fits(*network, type->shape, flags.folder);
    other = network->info().sha256 != reader.record().model_sha256;
  } else {
    network = load_campaign_model(reader.record());
  }
  if (other && network->info().classes != reader.classes())
    bad_usage("{}: knows {} classes, the campaign's model {}", flags.other.model, network->info().classes,
              reader.classes());
  std::unordered_map<std::int64_t, bool> seed_right;
  if (other) seed_right = judge_seeds(reader, *network);

  Replay result;
  Progress progress("replaying", reader.counters().faults, "faults");
  FaultFilter filter;
  filter.most = kChunk;
  while (true) {
    check_interrupt();
    std::vector<FaultRecord> faults = reader.faults(filter);
    if (faults.empty()) break;
    replay_chunk(reader, *network, faults, other ? &seed_right : nullptr, result);
    progress.advance(static_cast<std::int64_t>(faults.size()));
    filter.first = faults.back().id + 1;
  }
  progress.finish();
  bool good = result.unreadable.empty() && (other || result.healed.empty());
  if (!good) common.exit_code = 1;
  if (common.json) {
    json j = {{"folder", flags.folder},
              {"model", network->info().path},
              {"same_model", !other},
              {"faults", result.faults},
              {"fail", result.fail},
              {"as_before", result.as_before},
              {"not_a_number", result.not_a_number},
              {"unreadable", result.unreadable}};
    if (other) {
      j["transfer_rate"] = share(result.fail, result.faults);
      j["seed_right"] = result.seed_right;
      j["seed_right_fail"] = result.seed_right_fail;
      j["seed_right_transfer_rate"] = share(result.seed_right_fail, result.seed_right);
    } else {
      j["not_failing"] = result.healed;
    }
    print_json(j, 1);
    return;
  }
  if (other) {
    say("{} of {} faults ({:.2f}%) fail on {}, too; of the {} whose seed it gets right {:.2f}%\n",
        format_count(result.fail), format_count(result.faults), share(result.fail, result.faults) * 100,
        network->info().path, format_count(result.seed_right), share(result.seed_right_fail, result.seed_right) * 100);
  } else {
    say("{} of {} faults fail again when read from their files ({} with the same verdict)\n", format_count(result.fail),
        format_count(result.faults), format_count(result.as_before));
    for (std::size_t i = 0; i < std::min(kMostShown, result.healed.size()); ++i)
      say("does not fail: {}\n", result.healed[i]);
  }
  if (result.not_a_number > 0)
    say("{} of them are {}: their scores are NaN or infinite\n", format_count(result.not_a_number), kNotANumberName);
  for (std::size_t i = 0; i < std::min(kMostShown, result.unreadable.size()); ++i) say("{}\n", result.unreadable[i]);
}

}  // namespace

void add_replay_verb(CLI::App& app, Common& common) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* verb =
      make_verb(app, common, "replay", "judge every fault of a campaign again, from its file",
                "  galvani replay run1\n"
                "  galvani replay run1 --model other.onnx     do its faults break another model, too?\n"
                "Exit code 1 if a fault cannot be read, or does not fail again on the model it was found with.");
  runs_models(*verb, common, [] { return Confinement(); });
  verb->add_option("run", flags->folder, "the campaign's folder")->required();
  flags->other.add_to(*verb);
  verb->remove_option(verb->get_option("model"));
  verb->add_option("--model", flags->other.model, "another model (default: the campaign's)");
  verb->callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
