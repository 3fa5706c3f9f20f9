#include "galvani/report/replay.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "gate_flags.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

constexpr std::size_t kReplayShown = 20;

struct ReplayFlags {
  std::string folder;
  ModelFlags other;
  GateFlags gates;
};

std::shared_ptr<Network> load_model(const CampaignReader& reader, ReplayFlags& flags) {
  if (flags.other.model.empty()) return load_campaign_model(reader.record());
  SampleType type = reader.type();
  std::shared_ptr<Network> network = flags.other.load(type);
  check_fits(*network, type.shape, flags.folder);
  return network;
}

Json as_json(const Replay& replay, const ReplayFlags& flags, const Network& network) {
  Json j = {{"folder", flags.folder},
            {"model", network.info().path},
            {"same_model", replay.same_model},
            {"faults", replay.faults},
            {"fail", replay.fail},
            {"as_before", replay.as_before},
            {"not_a_number", replay.not_a_number},
            {"unreadable", replay.unreadable}};
  if (replay.same_model) {
    j["not_failing"] = replay.healed;
  } else {
    j["transfer_rate"] = replay.transfer_rate();
    j["seed_right"] = replay.seed_right;
    j["seed_right_fail"] = replay.seed_right_fail;
    j["seed_right_transfer_rate"] = replay.seed_right_transfer_rate();
  }
  return j;
}

void print(const Replay& replay, const Network& network) {
  if (replay.same_model) {
    say("{} of {} fail again when read from their files ({} with the same verdict)\n", format_count(replay.fail),
        counted(replay.faults, "fault"), format_count(replay.as_before));
    for (std::size_t i = 0; i < std::min(kReplayShown, replay.healed.size()); ++i)
      say("does not fail: {}\n", replay.healed[i]);
  } else {
    say("{} of {} ({:.2f}%) fail on {}, too; of the {} whose seed it gets right {:.2f}%\n", format_count(replay.fail),
        counted(replay.faults, "fault"), replay.transfer_rate() * 100, network.info().path,
        format_count(replay.seed_right), replay.seed_right_transfer_rate() * 100);
  }
  if (replay.not_a_number > 0)
    say("{} of them are {}: their scores are NaN or infinite\n", format_count(replay.not_a_number), kNotANumberName);
  for (std::size_t i = 0; i < std::min(kReplayShown, replay.unreadable.size()); ++i) say("{}\n", replay.unreadable[i]);
}

void run(Common& common, ReplayFlags& flags) {
  flags.gates.check(names_of(figures_of(Replay())));
  CampaignReader reader(flags.folder);
  std::shared_ptr<Network> network = load_model(reader, flags);
  Replay replay = replay_faults(reader, *network);
  if (!replay.good()) common.exit_code = 1;
  if (common.json) {
    common.give(as_json(replay, flags, *network));
  } else {
    print(replay, *network);
  }
  flags.gates.judge(common, figures_of(replay), {"galvani replay " + network->info().path, flags.folder, 0, {}});
}

}  // namespace

void add_replay_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<ReplayFlags>();
  Verb& verb =
      make_verb(app, common, "replay", "judge every fault of a campaign again, from its file",
                "  galvani replay run1\n"
                "  galvani replay run1 --model other.onnx     do its faults break another model, too?\n"
                "Exit code 1 if a fault cannot be read, or does not fail again on the model it was found with.");
  runs_models(verb, common, [flags] { return Confinement{{}, {flags->gates.junit}}; });
  verb.add_option("run", flags->folder, "the campaign's folder").required();
  flags->other.add_preprocessing(verb);
  verb.add_option("--model", flags->other.model, "another model (default: the campaign's)");
  flags->gates.usual = "unreadable>0";
  flags->gates.add_to(verb, "transfer-rate>0.5");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
