#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "campaign_flags.h"
#include "coverage_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json_text.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/guide.h"
#include "galvani/fuzz/scheduler.h"
#include "galvani/fuzz/summary.h"
#include "galvani/model/evaluate.h"
#include "verb.h"

namespace galvani::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t kUsualIterations = 10000;

struct FuzzFlags {
  ModelFlags model;
  NeuronFlags neurons;
  ProfileFlags profile;
  CampaignSettings settings;
  std::string data;
  std::string folder;
  std::string style;
  std::string mutators;
  std::string scheduler;
  std::int64_t iterations = 0;
  std::string time;
  std::int64_t outputs = 0;
  std::int64_t faults = 0;
  std::vector<std::string> gates;
  std::string junit;
  bool list = false;
  bool plain = false;
};

template <class Entries>
void add_rows(Table& table, const char* kind, const Entries& entries) {
  for (const auto& entry : entries) {
    std::string options;
    for (const OptionInfo& option : entry.schema) {
      std::string value = to_string(option.fallback);
      options += fmt::format("{}{}={}", options.empty() ? "" : ", ", option.name, value.empty() ? "..." : value);
    }
    table.add({kind, entry.name, entry.help, options});
  }
}

void list_components() {
  Table table({"", "name", "what it does", "options (default)"});
  add_rows(table, "guide", guides().entries());
  add_rows(table, "scheduler", schedulers().entries());
  say("{}", table.str());
}

Budget budget_of(const FuzzFlags& flags) {
  Budget budget{flags.iterations, flags.time.empty() ? 0 : parse_duration(flags.time), flags.outputs, flags.faults};
  bool none = flags.iterations == 0 && flags.time.empty() && flags.outputs == 0 && flags.faults == 0;
  if (none) budget.iterations = kUsualIterations;
  return budget;
}

// The file that is named, what a campaign that is gone on with has kept, or learned from training data.
std::shared_ptr<const Profile> get_profile(const FuzzFlags& flags, Tracer& tracer, std::string& source) {
  const ProfileFlags& p = flags.profile;
  std::vector<Spec> criteria = guide_criteria(Spec::parse(flags.settings.guide));
  bool needed = false;
  for (const Spec& criterion : criteria) needed = needed || !profile_parts(criterion, tracer.layout()).empty();
  if (!needed) return nullptr;
  source = !p.file.empty() ? p.file : p.train.empty() ? "" : fmt::format("{}, {} inputs", p.train, p.size);
  fs::path stored = stored_profile(flags.folder);
  if (is_campaign(flags.folder) && p.file.empty() && fs::exists(stored) &&
      (p.train.empty() || CampaignRecord::from_toml(fs::path(flags.folder) / "campaign.toml").profile == source)) {
    try {
      return Profile::load(stored, tracer.layout());
    } catch (const Error&) {
      // Of another model or damaged: learn it anew, the campaign will tell if that is not the same.
      if (p.train.empty()) throw;
    }
  }
  return p.get(tracer, criteria, flags.settings.seed);
}

std::string xml(const std::string& text) {
  return escape_markup(printable(text, 2000));
}

// One test a condition; it fails when the condition is met.
std::string junit_xml(const CampaignReader& reader, const CampaignSummary& summary, const std::vector<Gate>& gates) {
  std::size_t failures = 0;
  std::string cases;
  for (const Gate& gate : gates) {
    bool met = gate.met(summary);
    failures += met ? 1 : 0;
    cases += fmt::format(R"(    <testcase name="{}" classname="{}" time="{:.3f}")", xml("not " + gate.text()),
                         xml(reader.folder().string()), summary.seconds);
    if (!met) {
      cases += "/>\n";
      continue;
    }
    cases += fmt::format(">\n      <failure message=\"{}\">\n",
                         xml(fmt::format("{}: it is {}", gate.text(), gate.value(summary))));
    FaultFilter filter;
    filter.most = 20;
    reader.for_each_fault(filter, [&](const FaultRecord& fault) {
      std::string taken =
          fault.predicted == kNotANumber
              ? fmt::format("has scores that are {}", kNotANumberName)
              : fmt::format("taken for {} ({:.1f}%)", reader.class_name(fault.predicted), fault.confidence * 100);
      cases += xml(fmt::format("{}: {} {}, {}", fault.file, reader.class_name(fault.label), taken, fault.rule)) + "\n";
    });
    cases += "      </failure>\n    </testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" "
      "failures=\"{}\" errors=\"0\" time=\"{:.3f}\">\n{}  </testsuite>\n</testsuites>\n",
      xml("galvani fuzz " + reader.record().settings.guide), gates.size(), failures, summary.seconds, cases);
}

// Without a model, the folder of a campaign says everything; only what does not belong to its identity may be given.
void take_from_record(const CLI::App& verb, Common& common, FuzzFlags& flags) {
  std::set<std::string> free = {"--output", "--iterations", "--time",    "--outputs", "--faults", "--fail-if",
                                "--junit",  "--plain",      "--threads", "--json",    "--quiet",  "--verbose"};
  // What was learned of the training data can be learned again; the campaign tells whether it is the same.
  if (!fs::exists(stored_profile(flags.folder))) free.insert({"--profile", "--train", "--profile-size"});
  for (const CLI::Option* option : verb.get_options()) {
    std::string name = option->get_name();
    if (option->count() > 0 && free.count(name) == 0)
      bad_usage("{} is settled for the campaign in {}: leave it out to go on, or name the model and every setting",
                name, flags.folder);
  }
  CampaignRecord record = CampaignRecord::from_toml(fs::path(flags.folder) / "campaign.toml");
  flags.model.model = record.model;
  flags.model.options.flags = record.preprocess;
  flags.data = record.data;
  flags.style = record.style;
  flags.settings = record.settings;
  flags.mutators = record.settings.mutators;
  flags.scheduler = record.settings.scheduler;
  flags.neurons.taps = record.settings.taps;
  flags.neurons.neurons = record.settings.neurons;
  common.seed = record.settings.seed;
}

void run(const CLI::App& verb, Common& common, FuzzFlags& flags) {
  if (flags.list) {
    list_components();
    return;
  }
  if (flags.model.model.empty() && is_campaign(flags.folder)) take_from_record(verb, common, flags);
  if (flags.model.model.empty()) bad_usage("name a model, or with -o a campaign to go on with");
  if (flags.data.empty()) bad_usage("--data is missing: which inputs to start from, such as mnist:test");
  if (flags.folder.empty()) bad_usage("-o is missing: the campaign's folder");
  std::vector<Gate> gates;
  for (const std::string& text : flags.gates) gates.emplace_back(text);
  Budget budget = budget_of(flags);
  CampaignSettings& settings = flags.settings;
  GuideDefaults defaults = guide_defaults(Spec::parse(settings.guide));
  guides().options(Spec::parse(settings.guide));
  settings.mutators = flags.mutators.empty() ? defaults.mutators : flags.mutators;
  settings.scheduler = flags.scheduler.empty() ? defaults.scheduler : flags.scheduler;
  settings.seed = common.seed;
  settings.taps = flags.neurons.taps;
  settings.neurons = flags.neurons.neurons;

  if (is_campaign(flags.folder)) {
    // The bits of a forward pass depend on how it is cut into pieces, so that is taken from the record.
    Execution then = CampaignRecord::from_toml(fs::path(flags.folder) / "campaign.toml").execution;
    std::int64_t asked = flags.model.options.micro_batch;
    bool as_asked = (asked == 0 || asked == then.micro_batch) && (flags.model.options.fused || !then.fused);
    if (as_asked) flags.model.options.execution = then;
  }
  Dataset data = load_data(flags.data);
  std::unique_ptr<Network> network = flags.model.load(&data);
  check_fits(*network, data.images, data.name);
  Tracer tracer = flags.neurons.tracer(*network);
  std::string source;
  std::shared_ptr<const Profile> profile = get_profile(flags, tracer, source);
  std::unique_ptr<Dataset> style;
  if (!flags.style.empty()) style = std::make_unique<Dataset>(load_data(flags.style));
  {
    Campaign campaign(flags.folder, settings, {tracer, data, profile, source, style.get()});
    bool plain = flags.plain || common.quiet;
    std::unique_ptr<Listener> listener = common.json ? make_json_listener()
                                         : plain     ? make_progress_listener()
                                                     : make_screen_listener();
    campaign.run(budget, {listener.get()});
  }

  CampaignReader reader(flags.folder);
  CampaignSummary summary = summarise(reader);
  if (common.json) {
    json j = summary_json(reader, summary);
    j["event"] = "summary";
    print_json(j);
  } else {
    say("{}", summary_text(reader, summary));
    say("\nin {}; see it again with `galvani stats {}`, check it with `galvani replay {}`\n", flags.folder,
        flags.folder, flags.folder);
  }
  for (const Gate& gate : gates) {
    if (!gate.met(summary)) continue;
    common.exit_code = 1;
    if (!common.json) say("failed: {} (it is {})\n", gate.text(), gate.value(summary));
  }
  if (flags.junit.empty()) return;
  if (gates.empty()) gates.emplace_back("faults>0");
  write_file(flags.junit, junit_xml(reader, summary, gates));
}

}  // namespace

void add_fuzz_verb(CLI::App& app, Common& common) {
  auto flags = std::make_shared<FuzzFlags>();
  CLI::App* verb = make_verb(
      app, common, "fuzz", "find inputs that break a network",
      "  galvani fuzz lenet5.onnx --data mnist:test --train mnist:train --guide kmnc -o run1\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --guide nlc --time 10m -o run2\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --guide tknc --outputs 1000 --reset-when-full -o run3\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --guide random --fail-if \"faults>0\" --junit fuzz.xml -o run4\n"
      "  galvani fuzz --list\n"
      "  galvani fuzz -o run1 --iterations 20000                              goes on with run1\n"
      "So does the same command again. Ctrl-C is safe.");
  runs_models(*verb, common, [flags] { return Confinement{{flags->folder}, {flags->junit}}; });
  flags->model.add_to(*verb);
  verb->get_option("model")->required(false);
  flags->neurons.add_to(*verb);
  flags->profile.add_to(*verb);
  CampaignSettings& s = flags->settings;
  verb->add_option("--data", flags->data, "labelled inputs; those the model gets right are the seeds");
  verb->add_option("-o,--output", flags->folder, "the campaign's folder; one that exists is gone on with");
  verb->add_option("--guide", s.guide, "which mutants to keep (see --list)")->capture_default_str();
  verb->add_option("--scheduler", flags->scheduler, "which input to mutate next (see --list; default: decay)");
  verb->add_option("--mutators", flags->mutators, "mutators and catalogues, docs/mutators.md (default: nsgen)");
  verb->add_option("--style", flags->style, "images to take a style from (default: the seeds)");
  verb->add_option("--seeds", s.seeds, "how many inputs to start from")->capture_default_str();
  verb->add_option("--energy", s.energy, "mutants of an input that was picked")->capture_default_str();
  verb->add_option("--batch", s.batch, "picks evaluated together")->capture_default_str();
  verb->add_option("--alpha", s.alpha, "validity: share of pixels that may change at will")->capture_default_str();
  verb->add_option("--beta", s.beta, "validity: share of 255 that any pixel may change")->capture_default_str();
  verb->add_option("--max-tries", s.max_tries, "tries for a valid mutant")->capture_default_str();
  verb->add_flag("--stop-at-kept", s.stop_at_kept,
                 "an input that was picked gives no more mutants once one is kept (NSGen's loop)");
  verb->add_flag("--reset-when-full", s.reset_when_full, "forget what is covered when nothing more can be, and go on");
  verb->add_option("--patience", s.patience, "picks without a kept mutant that count as full")->capture_default_str();
  const char* budget = "Budget (the first that is reached, at the end of a batch)";
  auto limit = CLI::Range(std::int64_t{1}, std::int64_t{1} << 50);
  verb->add_option("--iterations", flags->iterations, "picks (10000 if no budget is given)")
      ->check(limit)
      ->group(budget);
  verb->add_option("--time", flags->time, "time of work, such as 90s, 15m or 6h")->group(budget);
  verb->add_option("--outputs", flags->outputs, "kept mutants")->check(limit)->group(budget);
  verb->add_option("--faults", flags->faults, "faults")->check(limit)->group(budget);
  const char* ci = "Continuous integration";
  verb->add_option("--fail-if", flags->gates, "exit 1 if this holds at the end, such as \"faults>0\"; may be repeated")
      ->group(ci);
  verb->add_option("--junit", flags->junit, "write the conditions as JUnit XML")->group(ci);
  verb->add_flag("--plain", flags->plain, "a progress bar instead of the status screen");
  verb->add_flag("--list", flags->list, "list guides and schedulers with their options");
  verb->callback([&common, flags, verb] { run(*verb, common, *flags); });
}

}  // namespace galvani::cli
