#include "galvani/attack/attack.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "campaign_flags.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/data/spec.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/reader.h"
#include "galvani/fuzz/references.h"
#include "galvani/fuzz/summary.h"
#include "galvani/generate/attack.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"
#include "galvani/report/robustness.h"
#include "galvani/trace/trace.h"
#include "gate_flags.h"
#include "listeners.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kAttackedTogether = 128;
constexpr double kGrayRadius = 76.0 / 255;  // 0.3 is usual for MNIST and its like; this many grey levels are in it
constexpr double kColourRadius = 8.0 / 255;
constexpr double kGrayLength = 1.5;  // the same of L2
constexpr double kColourLength = 0.5;
constexpr double kSoundRadius = 0.002;  // of speech, as attacks on speaker recognition have it
constexpr double kSoundLength = 0.5;

struct AttackFlags {
  ModelFlags model;
  std::string data;
  std::string folder;
  std::string method = "pgd";
  std::string eps;
  std::string norm;
  std::string target = "any";
  std::string labels;
  std::string plot;
  std::int64_t batch = kAttackedTogether;
  bool list = false;
  GateFlags gates;
};

void list_attacks(const Common& common) {
  Json all = Json::array();
  Table table({"attack", "kind", "what it does"});
  Table details({"option", "default", "meaning"});
  for (const auto& entry : attacks().entries()) {
    std::unique_ptr<Attack> attack = make_attack(Spec{entry.name, {}});
    const char* kind = attack->bounded() ? "within eps" : "smallest change";
    table.add({entry.name, kind, entry.help});
    Json options = Json::array();
    for (const OptionInfo& info : entry.schema) {
      details.add({entry.name + ":" + info.name, to_string(info.fallback), info.help});
      options.push_back({{"name", info.name}, {"default", to_string(info.fallback)}, {"help", info.help}});
    }
    all.push_back({{"name", entry.name}, {"kind", kind}, {"help", entry.help}, {"options", options}});
  }
  if (common.json) {
    common.give({{"attacks", all}}, 2);
  } else {
    say("{}\n{}", table.str(), details.str());
  }
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

void check_labelled(const Network& network, const Dataset& data) {
  auto none = (data.labels < 0).sum().item<std::int64_t>();
  if (none > 0)
    bad_input(
        "{}: {} of {} inputs have no label, and an attack must know what is right; --labels model takes the model's "
        "own verdicts",
        data.name, format_count(none), format_count(data.size()));
  check_labels(network, data);
}

// What is usual for inputs of a kind, as a share of the full scale.
double usual_radius(const SampleType& type, Norm norm) {
  bool length = norm == Norm::l2;
  if (type.kind == SampleKind::audio) return length ? kSoundLength : kSoundRadius;
  if (type.shape[0] == 1) return length ? kGrayLength : kGrayRadius;
  return length ? kColourLength : kColourRadius;
}

// The generator's spec that the flags stand for. What is usual depends on the inputs.
Spec generator_of(const AttackFlags& flags, const SampleType& type, std::int64_t classes) {
  Spec method = Spec::parse(flags.method);
  Spec generator{"attack", {{"method", method.str()}}};
  auto give = [&](const char* option, const std::string& value) {
    if (!value.empty()) generator.settings.emplace_back(option, value);
  };
  bool own_radius = std::any_of(method.settings.begin(), method.settings.end(),
                                [](const auto& setting) { return setting.first == "eps"; });
  give("norm", flags.norm);
  give("target", flags.target);
  AttackPlan plan = plan_attack(generator);
  plan.check_target(classes);
  std::string eps = flags.eps;
  if (eps.empty() && plan.bounded() && !own_radius) {
    Norm norm = plan.attacks.front()->norm();
    double usual = usual_radius(type, norm);
    eps = fmt::format("{}", usual);
    const char* kind = type.kind == SampleKind::audio ? "sounds" : type.shape[0] == 1 ? "gray images" : "colour images";
    log::info("eps {} of the full scale in {}, as is usual for {} (--eps says otherwise)",
              radius_text(usual, static_cast<double>(type.full())), to_string(norm), kind);
  }
  give("eps", eps);
  return generator;
}

// A bar over the inputs; batches are few and slow.
class AttackListener : public Listener {
 public:
  void started(const CampaignStatus& status) override {
    done_ = status.tried_seeds;
    progress_.emplace("attacking", status.seeds - done_, "inputs");
  }
  void batch(const CampaignStatus& status, const std::vector<FaultRecord>&) override {
    progress_->note(
        fmt::format("{} of {} broken", format_count(status.broken_seeds), format_count(status.tried_seeds)));
    progress_->advance(status.tried_seeds - done_);
    done_ = status.tried_seeds;
  }
  void finished(const CampaignStatus&, const std::string&) override { progress_->finish(); }

 private:
  std::optional<Progress> progress_;
  std::int64_t done_ = 0;
};

std::string percent_text(double share) {
  return fmt::format("{:.2f}%", share * 100);
}

void print_robustness(const Robustness& r, const std::string& folder) {
  auto pair = [](const ChangeSizes::Size& s, double scale, const char* format) {
    return fmt::format(fmt::runtime(fmt::format("{0} / {0}", format)), s.mean * scale, s.median * scale);
  };
  say("{}, {}\n\n", r.attack, r.bounded ? "within eps" : "smallest change");
  Table table({">eps", ">accuracy", ">95% interval", ">broken", ">as floats"});
  bool sounds = r.type.kind == SampleKind::audio;
  std::vector<std::string> columns = {">eps", sounds ? ">L∞ in steps" : ">L∞ in levels", ">L2", ">L0"};
  if (sounds) columns.emplace_back(">SNR in dB");
  Table sizes(columns);
  for (const RobustnessLevel& level : r.levels) {
    table.add({level.name, percent_text(level.accuracy),
               fmt::format("{:.1f} .. {:.1f}%", level.low * 100, level.high * 100), format_count(level.broken),
               level.broken_before < 0 ? "" : format_count(level.broken_before)});
    if (level.broken == 0) continue;
    std::vector<std::string> cells = {level.name, pair(level.sizes.linf, static_cast<double>(r.type.full()), "{:.1f}"),
                                      pair(level.sizes.l2, 1, "{:.3g}"), pair(level.sizes.l0, 100, "{:.1f}%")};
    if (sounds) cells.push_back(pair(level.sizes.snr, 1, "{:.1f}"));
    sizes.add(cells);
  }
  say("{}\n", table.str());
  if (r.last().broken > 0)
    say("{}mean / median of the broken inputs' changes; L2 of the full scale, L0 of the {}\n\n", sizes.str(),
        sounds ? "moments" : "pixels");
  constexpr std::size_t kMostClasses = 20;
  std::vector<ClassRobustness> classes = r.classes;
  classes.erase(std::remove_if(classes.begin(), classes.end(), [](const auto& c) { return c.inputs == 0; }),
                classes.end());
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.robust() < b.robust(); });
  bool cut = classes.size() > kMostClasses;
  if (cut) classes.resize(kMostClasses);
  Table per_class({cut ? "weakest classes" : "class", ">inputs", ">clean", ">" + r.last().name, ">broken"});
  for (const ClassRobustness& c : classes)
    per_class.add({printable(c.name, 40), format_count(c.inputs), percent_text(c.clean()), percent_text(c.robust()),
                   fmt::format("{} of {}", format_count(c.broken), format_count(c.tried))});
  say("{}\n", per_class.str());
  say("clean accuracy {}, robust {}; {} forward passes, {}\n", percent_text(r.seeds.accuracy()),
      percent_text(r.last().accuracy), format_count(r.passes), format_duration(r.seconds));
  say("\nthe examples are in {}: `galvani report {}` shows them, `galvani replay {}` checks them\n", folder, folder,
      folder);
}

void take_attack_from_record(const Verb& verb, Common& common, AttackFlags& flags) {
  const std::set<std::string> free = {"--output", "--fail-if", "--junit",   "--plot",      "--threads",
                                      "--json",   "--quiet",   "--verbose", "--json-lines"};
  for (const std::string& name : verb.given()) {
    if (free.count(name) == 0)
      bad_usage("{} is settled for the attack in {}: leave it out to go on, or name the model and every setting", name,
                flags.folder);
  }
  CampaignRecord record = CampaignRecord::from_toml(fs::path(flags.folder) / "campaign.toml");
  flags.model.model = record.model;
  flags.model.options.flags = record.preprocess;
  flags.data = record.data;
  flags.labels = record.settings.labels;
  common.seed = record.settings.seed;
}

void attack(const Verb& verb, Common& common, AttackFlags& flags) {
  if (flags.list) {
    list_attacks(common);
    return;
  }
  bool exists = is_campaign(flags.folder);
  bool from_record = flags.model.model.empty() && exists;
  if (from_record) take_attack_from_record(verb, common, flags);
  if (flags.model.model.empty()) bad_usage("name a model to attack, or with -o an attack to go on with");
  if (flags.data.empty()) bad_usage("--data is missing: which labelled inputs to attack, such as 'mnist:test[:1000]'");
  if (!from_record) flags.data = absolute_spec(flags.data);
  flags.gates.check(names_of(figures_of(Robustness())));
  make_attack(Spec::parse(flags.method));
  parse_radii(flags.eps);
  use_execution_of(flags.folder, flags.model.options);
  bool own_labels = !flags.labels.empty();
  flags.model.options.any_task = true;
  auto [network, view] = load_with_data(flags.model, flags.data, "test", !own_labels);
  const std::vector<std::string>& names = network->card().class_names;
  if (auto named = std::find(names.begin(), names.end(), flags.target);
      named != names.end() && !is_number(flags.target))
    flags.target = std::to_string(named - names.begin());
  Dataset data = view.load();
  check_fits(*network, data.images, data.name);
  own_labels = settle_labels(*network, data, own_labels);
  if (own_labels)
    flags.labels = "model";
  else
    check_labelled(*network, data);
  CampaignSettings settings;
  if (from_record) {
    settings = CampaignRecord::from_toml(fs::path(flags.folder) / "campaign.toml").settings;
  } else {
    settings.generator = generator_of(flags, data.type(), network->info().classes).str();
    settings.guide = "none";
    settings.scheduler = "once";
    settings.seeds = data.size();
    settings.energy = 1;
    settings.batch = flags.batch;
    settings.labels = flags.labels;
    settings.seed = common.seed;
  }
  AttackPlan plan = plan_attack(Spec::parse(settings.generator));
  if (!exists) {
    for (const std::string& warning :
         attack_warnings(*network, *plan.attacks.back(), data.images, data.labels, stated_references(*network, data)))
      log::warn("{}", warning);
  }
  Tracer tracer(*network, network->select_taps(settings.taps), NeuronUnit::channel);
  std::optional<Error> stopped;
  {
    Campaign campaign(flags.folder, settings, {tracer, data, nullptr, "", nullptr, nullptr});
    say_base(common, flags.folder, *network, data, flags.data);
    std::unique_ptr<Listener> listener =
        common.json_lines ? make_json_listener(common) : std::make_unique<AttackListener>();
    try {
      campaign.run({}, {listener.get()});
    } catch (const Error& e) {
      if (e.code() != ErrorCode::interrupted) throw;
      stopped = e;
    }
  }
  if (!leads()) {
    if (stopped) throw Error(*stopped);
    return;
  }
  CampaignReader reader(flags.folder);
  Robustness result = robustness_of(reader);
  if (!flags.plot.empty()) write_file(flags.plot, robustness_svg(result));
  if (common.json) {
    Json j = robustness_json(result);
    j["folder"] = flags.folder;
    if (common.json_lines) j["event"] = "summary";
    common.give(j);
  } else {
    print_robustness(result, flags.folder);
  }
  if (stopped) throw Error(*stopped);
  flags.gates.judge(common, figures_of(result), {"galvani attack " + result.attack, flags.folder, result.seconds, {}},
                    [&] { return fault_lines(reader); });
}

}  // namespace

void add_attack_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<AttackFlags>();
  Verb& verb = make_verb(
      app, common, "attack", "how accurate a network stays when inputs are changed on purpose",
      "  galvani attack lenet5.onnx --data 'mnist:test[:1000]'\n"
      "  galvani attack lenet5.onnx --data mnist:test --method pgd:steps=40 --eps 0.3 -o adv\n"
      "  galvani attack resnet.onnx --data 'cifar10:test[:500]' --method auto --eps 8/255 --fail-if \"robust<0.4\"\n"
      "  galvani attack resnet.onnx --data 'cifar10:test[:500]' --eps 0..16/255 --plot curve.svg\n"
      "  galvani attack resnet.onnx --data 'cifar10:test[:100]' --method deepfool -o smallest\n"
      "  galvani attack --list\n"
      "  galvani attack -o adv                                    goes on with what was stopped\n"
      "The folder is a campaign's: replay, report, stats, faults and export read it.");
  runs_models(
      verb, common,
      [flags] {
        if (flags->folder.empty() && !flags->model.model.empty())
          flags->folder = usual_folder(flags->model.model, "attack");
        return Confinement{{flags->folder}, {flags->gates.junit, flags->plot}};
      },
      Processes::many);
  has_news(verb, common);
  flags->model.add_to(verb, /*required=*/false);
  verb.add_option("--data", flags->data, "labelled inputs; those the model gets right are attacked");
  verb.add_option("-o,--output", flags->folder,
                  "folder of the examples; one that exists is gone on with (default: a new one in galvani-runs)");
  verb.add_option("--method", flags->method, "the attack and its options, such as pgd:steps=40 (see --list)")
      .show_default();
  verb.add_option("--eps", flags->eps,
                  "how large a change may be, as a share of the full scale: 8/255, 0.3, or several: 0,1/255,2/255, "
                  "0..16/255 (default: what is usual for such images)");
  verb.add_option("--norm", flags->norm, "how a change is measured: linf, l2 (default: the attack's own)")
      .check(OneOf{{"linf", "l2", "l0"}});
  verb.add_option("--target", flags->target, "what inputs are to become: any, next, least, random, or a class")
      .show_default();
  verb.add_option("--labels", flags->labels,
                  "what is right: the model's own verdict on the original (default: the data's labels)")
      .check(OneOf{{"model"}});
  verb.add_option("--batch", flags->batch, "inputs attacked together").check(Range(1, 1 << 16)).show_default();
  verb.add_option("--plot", flags->plot, "write accuracy by eps as SVG");
  verb.add_flag("--list", flags->list, "list the attacks with their options");
  flags->gates.add_to(verb, "robust<0.4");
  verb.callback([&common, flags, &verb] { attack(verb, common, *flags); });
}

}  // namespace galvani::cli
