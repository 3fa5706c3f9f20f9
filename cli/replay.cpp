#include "galvani/report/replay.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/base/error.h"
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
  bool fixed = false;
  GateFlags gates;
};

std::shared_ptr<Network> load_model(const CampaignReader& reader, ReplayFlags& flags) {
  if (flags.other.model.empty()) return load_campaign_model(reader.record());
  SampleType type = reader.type();
  // Asked what the campaign's model was, unless somebody says otherwise.
  const CardFlags& was = reader.record().preprocess;
  CardFlags& given = flags.other.options.flags;
  flags.other.options.any_task = true;
  if (reader.record().task() != Task::classes) {
    if (given.task.empty()) given.task = was.task;
    if (given.threshold.empty()) given.threshold = was.threshold;
    if (given.tolerance.empty()) given.tolerance = was.tolerance;
  }
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
  for (const char* list : {"failing", "fixed"}) j[list] = Json::array();
  for (const ReplayedFault& fault : replay.each) j[fault.fails() ? "failing" : "fixed"].push_back(fault.id);
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

std::string verdict_of(const CampaignReader& reader, std::int64_t predicted) {
  return predicted == kNotANumber ? kNotANumberName : printable(reader.class_name(predicted), 40);
}

// "faults/00000012-3-8.png: digits:test item 7 (3), was taken for 8".
std::string line_of(const CampaignReader& reader, const ReplayedFault& fault) {
  return fmt::format("{}: {} ({}), was taken for {}", fault.file, reader.seed_name(fault.seed),
                     verdict_of(reader, fault.label), verdict_of(reader, fault.before));
}

// A fault is a test: of the campaign's model it passes if it fails again, of another one if it is fixed.
std::vector<JunitCase> junit_cases(const CampaignReader& reader, const Replay& replay) {
  std::vector<JunitCase> cases;
  for (const ReplayedFault& fault : replay.each) {
    JunitCase& one = cases.emplace_back();
    one.name = fmt::format("fault {}", fault.id);
    std::string line = line_of(reader, fault);
    if (replay.same_model && !fault.fails()) one.failure = "does not fail again: " + line;
    if (!replay.same_model && fault.fails())
      one.failure = fmt::format("still fails: {}, now for {}", line, verdict_of(reader, fault.now));
  }
  for (const std::string& problem : replay.unreadable) cases.push_back({"file of a fault", problem, ""});
  return cases;
}

void print_fixed(const CampaignReader& reader, const Replay& replay) {
  for (const ReplayedFault& fault : replay.each) {
    if (!fault.fails()) say("fixed: {}\n", line_of(reader, fault));
  }
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
    if (!replay.healed.empty())
      say("{} of them it gets right: --fixed lists them\n",
          format_count(static_cast<std::int64_t>(replay.healed.size())));
  }
  if (replay.not_a_number > 0)
    say("{} of them are {}: their scores are NaN or infinite\n", format_count(replay.not_a_number), kNotANumberName);
  for (std::size_t i = 0; i < std::min(kReplayShown, replay.unreadable.size()); ++i) say("{}\n", replay.unreadable[i]);
}

void run(Common& common, ReplayFlags& flags) {
  flags.gates.check(names_of(figures_of(Replay())));
  if (flags.fixed && flags.other.model.empty())
    bad_usage("--fixed lists what another model gets right: name it with --model");
  CampaignReader reader(flags.folder);
  std::shared_ptr<Network> network = load_model(reader, flags);
  Replay replay = replay_faults(reader, *network);
  if (!replay.good()) common.exit_code = 1;
  if (common.json) {
    common.give(as_json(replay, flags, *network));
  } else {
    if (flags.fixed) print_fixed(reader, replay);
    print(replay, *network);
  }
  JunitSuite suite{"galvani replay " + network->info().path, flags.folder, 0, {}};
  if (!flags.gates.junit.empty()) suite.cases = junit_cases(reader, replay);
  flags.gates.judge(common, figures_of(replay), suite);
}

}  // namespace

void add_replay_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<ReplayFlags>();
  Verb& verb =
      make_verb(app, common, "replay", "judge every fault of a campaign again, from its file",
                "  galvani replay run1\n"
                "  galvani replay run1 --model other.onnx     do its faults break another model, too?\n"
                "  galvani replay run1 --model new.onnx --fixed     which faults does a new version no longer have?\n"
                "Exit code 1 if a fault cannot be read, or does not fail again on the model it was found with.");
  runs_models(verb, common, [flags] { return Confinement{{}, {flags->gates.junit}}; });
  verb.add_option("run", flags->folder, "the campaign's folder").required();
  flags->other.add_preprocessing(verb);
  verb.add_option("--model", flags->other.model, "another model (default: the campaign's)");
  verb.add_flag("--fixed", flags->fixed, "list the faults that another model gets right");
  flags->gates.usual = "unreadable>0";
  flags->gates.add_to(verb, "transfer-rate>0.5");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
