#include <fmt/format.h>

#include <algorithm>
#include <any>
#include <array>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <type_traits>

#include "campaign_flags.h"
#include "coverage_flags.h"
#include "galvani/base/crew.h"
#include "galvani/base/crew_costs.h"
#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/data/spec.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/guide.h"
#include "galvani/fuzz/islands.h"
#include "galvani/fuzz/method.h"
#include "galvani/fuzz/references.h"
#include "galvani/fuzz/scheduler.h"
#include "galvani/fuzz/summary.h"
#include "galvani/generate/generator.h"
#include "galvani/model/inputs.h"
#include "galvani/report/junit.h"
#include "gate_flags.h"
#include "list_json.h"
#include "listeners.h"
#include "verb.h"

namespace galvani::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUsualIterations = 10000;
constexpr std::int64_t kUsualExchange = 1000;
constexpr const char* kGuideWithoutProfile = "nlc";

struct FuzzFlags {
  ModelFlags model;
  NeuronFlags neurons;
  ProfileFlags profile;
  bool usual_guide = false;  // likewise
  CampaignSettings settings;
  std::string data;
  std::string folder;
  std::string style;
  std::string method;
  // Short forms of options of the generator mutate.
  std::string mutators;
  std::string alpha;
  std::string beta;
  std::string snr;
  std::string max_tries;
  std::string with;  // of the generator deepxplore
  // Of the generator aeg.
  std::string aeg;
  std::string reference;
  std::int64_t islands = 0;  // 0: one campaign
  std::string run;           // the folder of the islands
  std::int64_t iterations = 0;
  std::string time;
  std::int64_t outputs = 0;
  std::int64_t faults = 0;
  GateFlags gates;
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

template <class Entries>
Json entries_json(const Entries& entries) {
  Json all = Json::array();
  for (const auto& entry : entries) all.push_back(entry_json(entry.name, entry.help, entry.schema));
  return all;
}

void list_components(const Common& common) {
  if (common.json) {
    Json named = Json::array();
    for (const Method& method : methods()) {
      const CampaignSettings& s = method.settings;
      named.push_back({{"name", method.name},
                       {"help", method.help},
                       {"guide", s.guide},
                       {"generator", s.generator},
                       {"scheduler", s.scheduler}});
    }
    common.give({{"methods", named},
                 {"generators", entries_json(generators().entries())},
                 {"guides", entries_json(guides().entries())},
                 {"schedulers", entries_json(schedulers().entries())}});
    return;
  }
  Table table({"", "name", "what it does", "options (default)"});
  for (const Method& method : methods()) {
    const CampaignSettings& s = method.settings;
    table.add({"method", method.name, method.help,
               fmt::format("guide {}, generator {}, scheduler {}", s.guide, s.generator, s.scheduler)});
  }
  add_rows(table, "generator", generators().entries());
  add_rows(table, "guide", guides().entries());
  add_rows(table, "scheduler", schedulers().entries());
  say("{}", table.str());
}

// `seed`, `taps` and `neurons` are flags of other verbs, too.
[[maybe_unused]] bool is_own_flag(std::string_view name) {
  return name != "seed" && name != "taps" && name != "neurons";
}

Budget budget_of(const FuzzFlags& flags) {
  Budget budget{flags.iterations, flags.time.empty() ? 0 : parse_duration(flags.time), flags.outputs, flags.faults};
  bool none = flags.iterations == 0 && flags.time.empty() && flags.outputs == 0 && flags.faults == 0;
  if (none) budget.iterations = kUsualIterations;
  return budget;
}

// What the guide compares with; a campaign that is gone on with has kept it.
std::shared_ptr<const Profile> get_profile(const FuzzFlags& flags, Tracer& tracer, std::string& source) {
  std::vector<Spec> criteria = guide_criteria(Spec::parse(flags.settings.guide));
  if (!needs_profile(criteria, tracer.layout())) {
    if (flags.usual_guide)
      log::info("guide {}, which needs no training data (--guide says otherwise)", flags.settings.guide);
    return nullptr;
  }
  flags.profile.tell("guide " + flags.settings.guide, "--guide");
  source = flags.profile.str();
  KeptProfile kept;
  if (is_campaign(flags.folder)) {
    kept.file = stored_profile(flags.folder);
    kept.source = CampaignRecord::from_toml(fs::path(flags.folder) / "campaign.toml").profile;
  }
  return find_profile(tracer, criteria, flags.profile, flags.settings.seed, kept);
}

// Without a model, the folder of a campaign says everything; only what does not belong to its identity may be given.
void take_from_record(const Verb& verb, Common& common, FuzzFlags& flags) {
  std::set<std::string> free = {"--output",     "--iterations", "--time",    "--outputs", "--faults",
                                "--fail-if",    "--junit",      "--plain",   "--threads", "--json",
                                "--json-lines", "--quiet",      "--verbose", "--islands", "--island"};
  // What was learned of the training data can be learned again; the campaign tells whether it is the same.
  if (!fs::exists(stored_profile(flags.folder))) free.insert({"--profile", "--train", "--profile-size"});
  for (const std::string& name : verb.given()) {
    if (free.count(name) == 0)
      bad_usage("{} is settled for the campaign in {}: leave it out to go on, or name the model and every setting",
                name, flags.folder);
  }
  CampaignRecord record = CampaignRecord::from_toml(fs::path(flags.folder) / "campaign.toml");
  flags.model.model = record.model;
  flags.model.options.flags = record.preprocess;
  flags.data = record.data;
  flags.style = record.style;
  flags.settings = record.settings;
  flags.neurons.taps = record.settings.taps;
  flags.neurons.neurons = record.settings.neurons;
  common.seed = record.settings.seed;
}

// What was not given comes from the method, or from what the guide's paper uses.
CampaignSettings resolve(const Verb& verb, const FuzzFlags& flags) {
  // What a campaign that exists was begun with stays, unless a command says otherwise, which is then refused.
  bool exists = is_campaign(flags.folder) && flags.method.empty();
  CampaignSettings chosen;
  if (exists) chosen = CampaignRecord::from_toml(fs::path(flags.folder) / "campaign.toml").settings;
  if (!flags.method.empty()) chosen = find_method(flags.method).settings;
  std::map<std::string, std::any> given;
  for_each_setting(flags.settings, [&](const SettingInfo& info, const auto& value) {
    if (is_own_flag(info.name) && verb.was_given("--" + std::string(info.name))) given.emplace(info.name, value);
  });
  for_each_setting(chosen, [&](const SettingInfo& info, auto& value) {
    if (auto it = given.find(info.name); it != given.end())
      value = std::any_cast<std::decay_t<decltype(value)>>(it->second);
  });
  if (!exists && flags.method.empty() && !verb.was_given("--guide") && !flags.profile.given()) {
    chosen.guide = kGuideWithoutProfile;
  }
  if (flags.islands > 0 && !exists && !verb.was_given("--exchange")) chosen.exchange = kUsualExchange;
  // Another guide than the method's comes with what its own paper uses.
  if (!flags.method.empty() && verb.was_given("--guide")) {
    if (!verb.was_given("--scheduler")) chosen.scheduler.clear();
    if (!verb.was_given("--generator")) chosen.generator.clear();
  }
  chosen = completed(chosen);
  Spec generator = Spec::parse(chosen.generator);
  auto give = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    auto& settings = generator.settings;
    settings.erase(std::remove_if(settings.begin(), settings.end(), [&](const auto& s) { return s.first == option; }),
                   settings.end());
    settings.emplace_back(option, value);
  };
  give("set", flags.mutators);
  give("alpha", flags.alpha);
  give("beta", flags.beta);
  give("snr", flags.snr);
  give("tries", flags.max_tries);
  give("with", flags.with);
  give("model", flags.aeg);
  give("features", flags.reference);
  chosen.generator = generator.str();
  return chosen;
}

// The training data that the guide absorbs, the same sample as a profile's.
std::unique_ptr<Dataset> absorbed_data(const FuzzFlags& flags, const Network& network) {
  if (flags.settings.absorb != "train" || flags.profile.train.empty() || is_campaign(flags.folder)) return nullptr;
  DataView train = open_data_for(network, flags.profile.train, "train");
  return std::make_unique<Dataset>(
      profile_sample(train, parse_profile_size(flags.profile.size), flags.settings.seed).load());
}

// The folder of an island stands for the run's from here on: the first of several, or the one that is worked on.
void find_islands(const Verb& verb, FuzzFlags& flags) {
  const std::string& one = flags.settings.island;
  if (flags.islands > 0 && !one.empty())
    bad_usage("--islands works on all of them, --island on one: give one of the two");
  if (flags.islands == 0 && !one.empty() && verb.was_given("--exchange"))
    bad_usage("--island works on one island alone, which cannot hear of the others: leave out --exchange");
  std::vector<fs::path> begun = is_campaign(flags.folder) ? std::vector<fs::path>() : islands_in(flags.folder);
  if (flags.islands == 0 && one.empty() && !begun.empty()) {
    // A run that is gone on with knows how many there are.
    flags.islands = parse_island(CampaignRecord::from_toml(begun.front() / "campaign.toml").settings.island).of;
  }
  if (flags.islands == 0 && one.empty()) return;
  flags.run = flags.folder;
  flags.folder = island_folder(flags.run, one.empty() ? 1 : parse_island(one).number).string();
}

void tell_round(const Common& common, const std::vector<IslandStatus>& islands) {
  CampaignCounters least = islands.front().counters;
  std::int64_t faults = 0;
  Json each = Json::array();
  for (const IslandStatus& island : islands) {
    const CampaignCounters& c = island.counters;
    least.iterations = std::min(least.iterations, c.iterations);
    faults += c.faults;
    Json one = Json::object();
    add_counters(c, one);
    each.push_back(one);
  }
  if (common.json_lines) {
    common.tell({{"event", "round"}, {"islands", each}});
  } else {
    log::info("{} islands have done {} iterations each and found {} faults", islands.size(),
              format_count(least.iterations), format_count(faults));
  }
}

// For tests/cluster/costs.py, with --verbose.
void tell_costs() {
  const CrewCosts& costs = crew_costs();
  std::string runs;
  for (const auto& [tasks, kind] : costs.runs)
    runs += fmt::format(" {} tasks, {} times, in {:.6f} s;", tasks, kind.calls, kind.seconds);
  log::debug("cut work:{} shared: {} bytes in {:.6f} s; stored beside it in {:.6f} s of a processor", runs,
             costs.shared_bytes, costs.share_seconds, beside_seconds());
}

// Ctrl-C is told of once the summary was said.
std::optional<Error> unless_stopped(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::interrupted) throw;
    return e;
  }
  return std::nullopt;
}

void run(const Verb& verb, Common& common, FuzzFlags& flags) {
  if (flags.list) {
    list_components(common);
    return;
  }
  find_islands(verb, flags);
  bool from_record = flags.model.model.empty() && is_campaign(flags.folder);
  if (from_record) take_from_record(verb, common, flags);
  if (flags.model.model.empty()) bad_usage("name a model, or with -o a campaign to go on with");
  if (flags.data.empty()) bad_usage("--data is missing: which inputs to start from, such as mnist:test");
  if (!from_record) flags.data = absolute_spec(flags.data);
  if (!flags.style.empty()) flags.style = absolute_spec(flags.style);
  if (!flags.profile.train.empty()) flags.profile.train = absolute_spec(flags.profile.train);
  if (!is_campaign(flags.folder)) flags.profile.take_own_split(flags.data);
  flags.gates.check(names_of(figures_of(CampaignSummary())));
  Budget budget = budget_of(flags);
  CampaignSettings& settings = flags.settings;
  flags.usual_guide = flags.method.empty() && !verb.was_given("--guide") && !is_campaign(flags.folder);
  if (!from_record) settings = resolve(verb, flags);
  settings.seed = common.seed;
  settings.taps = flags.neurons.taps;
  settings.neurons = flags.neurons.neurons;

  use_execution_of(flags.folder, flags.model.options);
  flags.model.options.any_task = true;
  auto [network, view] = load_with_data(flags.model, flags.data, "test", settings.labels != "model");
  Dataset data = view.load();
  check_fits(*network, data.images, data.name);
  if (settle_labels(*network, data, settings.labels == "model")) settings.labels = "model";
  Tracer tracer = flags.neurons.tracer(*network);
  std::string source;
  std::shared_ptr<const Profile> profile = get_profile(flags, tracer, source);
  std::unique_ptr<Dataset> style;
  if (!flags.style.empty()) style = std::make_unique<Dataset>(load_data(flags.style));
  auto tell_begun = [&, &of = *network] {
    say_base(common, flags.folder, of, data, flags.data);
    if (flags.iterations % settings.batch != 0)
      log::info("--iterations {}: a batch has {}, and the last one is brought to its end (--batch says otherwise)",
                flags.iterations, counted(settings.batch, "pick"));
  };
  std::optional<Error> stopped;
  if (flags.islands > 0) {
    std::unique_ptr<Dataset> train = absorbed_data(flags, *network);
    bool first = true;
    stopped = unless_stopped([&] {
      run_islands(flags.run, flags.islands, settings, {tracer, data, profile, source, style.get(), train.get()}, budget,
                  [&](const std::vector<IslandStatus>& islands) {
                    if (first) tell_begun();
                    first = false;
                    tell_round(common, islands);
                  });
    });
    flags.folder = flags.run;
  } else {
    std::unique_ptr<Dataset> train = absorbed_data(flags, *network);
    Campaign campaign(flags.folder, settings, {tracer, data, profile, source, style.get(), train.get()});
    tell_begun();
    bool plain = flags.plain || common.quiet;
    std::unique_ptr<Listener> listener = common.json_lines      ? make_json_listener(common)
                                         : plain || common.json ? make_progress_listener()
                                                                : make_screen_listener();
    stopped = unless_stopped([&] { campaign.run(budget, {listener.get()}); });
  }

  if (leads()) tell_costs();
  // The others wait: putting islands together takes its time.
  std::optional<CampaignReader> found;
  made_by_first([&] {
    found.emplace(flags.folder);
    return std::string();
  });
  if (!leads()) {
    if (stopped) throw Error(*stopped);
    return;
  }
  const CampaignReader& reader = *found;
  CampaignSummary summary = summarise(reader);
  if (common.json) {
    Json j = summary_json(reader, summary);
    if (common.json_lines) j["event"] = "summary";
    common.give(j);
  } else {
    say("{}", summary_text(reader, summary));
    std::int64_t files = reader.record().settings.keep_files;
    if (files > 0 && flags.islands == 0 && summary.counters.distinct_faults > files)
      say("\nfiles of {} of {} distinct faults are in {}/faults; `galvani export {} --to folder -o FOLDER` writes "
          "all\n",
          format_count(files), format_count(summary.counters.distinct_faults), flags.folder, flags.folder);
    say("\nin {}; see it again with `galvani stats {}`, check it with `galvani replay {}`\n", flags.folder,
        flags.folder, flags.folder);
  }
  // What was done so far has been told; conditions are on what was meant to be done.
  if (stopped) throw Error(*stopped);
  if (summary.counters.mutants > 0 && summary.counters.valid == 0)
    bad_usage("none of {} candidates was valid, so nothing was tested; {}, or choose another --generator",
              format_count(summary.counters.mutants),
              Spec::parse(reader.record().settings.generator).name == "mutate"
                  ? "choose other --mutators, widen --alpha and --beta (of sounds lower --snr)"
                  : "change the options of this one");
  flags.gates.judge(common, figures_of(summary),
                    {"galvani fuzz " + reader.record().settings.guide, flags.folder, summary.seconds, {}},
                    [&] { return fault_lines(reader); });
}

}  // namespace

void add_fuzz_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<FuzzFlags>();
  flags->settings = completed({});  // what the help shows
  Verb& verb = make_verb(
      app, common, "fuzz", "find inputs that break a network",
      "  galvani fuzz lenet5.onnx --data mnist:test\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --train mnist:train --guide kmnc -o run1\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --guide nlc --time 10m -o run2\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --train mnist:train --method dh-n -o run5\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --generator noise:eps=8/255 --guide random -o run6\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --method deepxplore --with lenet1.onnx -o run7\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --method cagfuzz --aeg aeg.onnx --reference vgg.onnx -o run8\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --guide tknc --outputs 1000 --reset-when-full -o run3\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --guide random --fail-if \"faults>0\" --junit fuzz.xml -o run4\n"
      "  galvani fuzz --list\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --islands 4 -o run9       four campaigns that tell each other\n"
      "  galvani fuzz lenet5.onnx --data mnist:test --island 2/4 -o run10     one of them, as a job of its own\n"
      "  galvani fuzz -o run1 --iterations 20000                              goes on with run1\n"
      "So does the same command again. Ctrl-C is safe.");
  runs_models(
      verb, common,
      [flags] {
        if (flags->folder.empty() && !flags->model.model.empty()) flags->folder = usual_folder(flags->model.model);
        if (leads()) return Confinement{{flags->folder}, {flags->gates.junit}};
        // Every island has a process that writes.
        bool islands = flags->islands > 0 || !islands_in(flags->folder).empty();
        return islands ? Confinement{{flags->folder}, {}} : Confinement();
      },
      Processes::many_that_write);
  has_news(verb, common);
  flags->model.add_to(verb, /*required=*/false);
  flags->neurons.add_to(verb);
  flags->profile.add_to(verb);
  verb.add_option("--data", flags->data, "labelled inputs; those the model gets right are the seeds");
  verb.add_option("-o,--output", flags->folder,
                  "the campaign's folder; one that exists is gone on with (default: a new one in galvani-runs)");
  verb.add_option("--method", flags->method, "a paper's generator, guide, scheduler and constants (see --list)");
  verb.add_option("--with", flags->with, "other models that the generator compares with, such as b.onnx,c.onnx");
  verb.add_option("--aeg", flags->aeg, "network that makes examples, of 'galvani train-generator' (generator aeg)");
  verb.add_option("--reference", flags->reference, "network whose features judge them, or none (generator aeg)");
  verb.add_option("--style", flags->style, "images to take a style from (default: the seeds)");
  for_each_setting(flags->settings, [&](const SettingInfo& info, auto& value) {
    if (!is_own_flag(info.name)) return;
    std::string name = "--" + std::string(info.name);
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) {
      verb.add_flag(name, value, info.help);
    } else {
      Option option = verb.add_option(name, value, info.help).show_default();
      if (!info.choices.empty()) option.check(OneOf{info.choices});
    }
  });
  verb.add_option("--islands", flags->islands,
                  "so many campaigns, each with a share of the seeds, that tell each other what they found "
                  "(--exchange, 1000 unless given)")
      .check(Range(std::int64_t{1}, std::int64_t{4096}));
  const char* mutation = "Mutation (options of the generator mutate)";
  verb.add_option("--mutators", flags->mutators, "mutators and catalogues, docs/mutators.md (default: nsgen)")
      .group(mutation);
  verb.add_option("--alpha", flags->alpha, "validity: share of pixels that may change at will (default: 0.2)")
      .group(mutation);
  verb.add_option("--beta", flags->beta, "validity: share of 255 that any pixel may change (default: 0.4)")
      .group(mutation);
  verb.add_option("--snr", flags->snr, "validity of sounds: dB from the change up to the original (default: 5)")
      .group(mutation);
  verb.add_option("--max-tries", flags->max_tries, "tries for a valid mutant (default: 50)").group(mutation);
  const char* budget = "Budget (the first that is reached, at the end of a batch)";
  auto limit = Range(std::int64_t{1}, std::int64_t{1} << 50);
  verb.add_option("--iterations", flags->iterations,
                  "picks, each of --energy candidates, in whole batches: 20 are 32 where --batch is 16 (10000 if no "
                  "budget is given)")
      .check(limit)
      .group(budget);
  verb.add_option("--time", flags->time, "time of work, such as 90s, 15m or 6h").group(budget);
  verb.add_option("--outputs", flags->outputs, "kept mutants").check(limit).group(budget);
  verb.add_option("--faults", flags->faults, "faults").check(limit).group(budget);
  flags->gates.usual = "faults>0";
  flags->gates.add_to(verb, "faults>0");
  verb.add_flag("--plain", flags->plain, "a progress bar instead of the status screen");
  verb.add_flag("--list", flags->list, "list methods, generators, guides and schedulers with their options");
  verb.callback([&common, flags, &verb] { run(verb, common, *flags); });
}

}  // namespace galvani::cli
