#include "galvani/fuzz/settings.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <charconv>
#include <cmath>
#include <sstream>
#include <type_traits>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/nesting.h"
#include "galvani/base/utf8.h"
#include "galvani/fuzz/guide.h"
#include "galvani/generate/generator.h"

namespace galvani {
namespace {

constexpr std::int64_t kMostIslands = 4096;
constexpr std::int64_t kUsualEnergy = 64;

enum class Matters {
  no,     // where things were, which may change
  fixed,  // part of what the campaign is, but nothing that a command can ask for
  yes,    // must be the same for a folder to be gone on with
  added,  // the same, but earlier versions did not know it: what is not set is not written either
  told,   // for people only; likewise
};

// Whether a record without this value says the same.
template <class T>
bool may_be_left_out(const T& value, Matters matters) {
  return (matters == Matters::added || matters == Matters::told) && value == T();
}

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value.empty() ? "nothing" : value;
  } else {
    return fmt::format("{}", value);
  }
}

}  // namespace

// Every value of a record: visit(section, key, value, matters).
template <class Record, class Visit>
void CampaignRecord::for_each_value(Record& r, Visit&& visit) {
  constexpr Matters kYes = Matters::yes;
  constexpr Matters kNo = Matters::no;
  bool newest = r.format == kNewest;
  visit("galvani", "version", r.version, kNo);
  for_each_setting(r.settings, [&](const SettingInfo& info, auto& value) {
    std::string_view name = info.name;
    bool added = name == "labels" || name == "island" || name == "exchange" || name == "keep-files";
    bool later = added || name == "absorb" || name == "wrong-seeds";
    if (newest || (name != "generator" && !later)) {
      visit("settings", info.name, value, added ? Matters::added : kYes);
    } else if (name == "generator") {
      visit("settings", "mutators", r.mutation_.mutators, kYes);
    }
    if (name != "batch" || newest) return;
    visit("settings", "alpha", r.mutation_.alpha, kYes);
    visit("settings", "beta", r.mutation_.beta, kYes);
    visit("settings", "max-tries", r.mutation_.max_tries, kYes);
  });
  visit("model", "path", r.model, kNo);
  visit("model", "sha256", r.model_sha256, kYes);
  visit("model", "classes", r.classes, kYes);
  visit("model", "input", r.input, kYes);
  visit("model", "range", r.preprocess.range, kYes);
  visit("model", "mean", r.preprocess.mean, kYes);
  visit("model", "std", r.preprocess.deviation, kYes);
  visit("model", "channels", r.preprocess.channels, kYes);
  visit("model", "layout", r.preprocess.layout, kYes);
  visit("model", "assumed", r.preprocess_assumed, Matters::told);
  visit("model", "names", r.preprocess.classes, Matters::told);
  visit("model", "head", r.preprocess.head, Matters::added);
  visit("model", "task", r.preprocess.task, Matters::added);
  visit("model", "output", r.preprocess.output, Matters::added);
  visit("model", "threshold", r.preprocess.threshold, Matters::added);
  visit("model", "tolerance", r.preprocess.tolerance, Matters::added);
  visit("data", "resize", r.preprocess.resize, Matters::told);
  visit("data", "crop", r.preprocess.crop, Matters::told);
  visit("data", "label-shift", r.preprocess.label_shift, Matters::told);
  visit("data", "skip-broken", r.preprocess.skip_broken, Matters::told);
  visit("execution", "micro-batch", r.execution.micro_batch, kYes);
  visit("execution", "channels-last", r.execution.channels_last, kYes);
  visit("execution", "fused", r.execution.fused, Matters::added);
  visit("data", "spec", r.data, kNo);
  visit("data", "sha256", r.data_sha256, kYes);
  visit("profile", "source", r.profile, kNo);
  visit("profile", "sha256", r.profile_sha256, kYes);
  visit("style", "source", r.style, kNo);
  visit("style", "sha256", r.style_sha256, kYes);
  visit(newest ? "generator" : "style-network", "sha256", r.generator_sha256, kYes);
  if (newest) visit("guide", "sha256", r.guide_sha256, kYes);
  visit("probe", "model", r.probe.model, Matters::fixed);
  visit("probe", newest ? "generator" : "mutation", r.probe.generator, Matters::fixed);
}

CampaignSettings completed(CampaignSettings settings) {
  GuideDefaults defaults = guide_defaults(Spec::parse(settings.guide));
  if (settings.scheduler.empty()) settings.scheduler = defaults.scheduler;
  if (settings.generator.empty()) settings.generator = defaults.generator;
  if (settings.energy == 0) settings.energy = usual_energy(settings.generator);
  if (settings.energy == 0) settings.energy = kUsualEnergy;
  return settings;
}

std::string Island::str() const {
  return fmt::format("{}/{}", number, of);
}

Island parse_island(const std::string& text) {
  Island island;
  if (text.empty()) return island;
  if (text.find(',') != std::string::npos || text.rfind("all/", 0) == 0)
    bad_usage("islands {} were merged here, and cannot be gone on with: go on with their own folders, and merge again",
              printable(text));
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, island.number);
  bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  auto second = slash ? std::from_chars(first.ptr + 1, end, island.of) : first;
  bool good = slash && second.ec == std::errc() && second.ptr == end && island.of >= 1 && island.of <= kMostIslands &&
              island.number >= 1 && island.number <= island.of;
  if (!good)
    bad_usage("--island is '{}', but must be a number and how many there are, from 1/1 to {}/{}, such as 2/4",
              printable(text), kMostIslands, kMostIslands);
  return island;
}

std::int64_t exchange_interval(const CampaignSettings& settings) {
  return (settings.exchange + settings.batch - 1) / settings.batch * settings.batch;
}

std::string CampaignRecord::to_toml() const {
  toml::table root;
  for_each_value(*this, [&](const char* section, const char* key, const auto& value, Matters matters) {
    if (may_be_left_out(value, matters)) return;
    if (!root.contains(section)) root.insert(section, toml::table());
    toml::table& table = *root[section].as_table();
    using T = std::decay_t<decltype(value)>;
    // TOML's integers are signed, and its text is UTF-8, which names of files need not be.
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      table.insert(key, std::to_string(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      table.insert(key, bytes_to_utf8(value));
    } else {
      table.insert(key, value);
    }
  });
  std::ostringstream out;
  out << "# Written when the campaign began; what it is depends on this file, so leave it as it is.\n" << root << "\n";
  return out.str();
}

CampaignRecord CampaignRecord::from_toml(const std::filesystem::path& path) {
  std::string text = read_file(path, 1 << 20);
  check_toml_nesting(text, path.string());
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& e) {
    bad_input("{}: is not TOML: {}", path.string(), printable(e.description()));
  }
  CampaignRecord record;
  if (!root["settings"]["generator"] && root["settings"]["mutators"]) record.format = 2;
  for_each_value(record, [&](const char* section, const char* key, auto& value, Matters matters) {
    using T = std::decay_t<decltype(value)>;
    toml::node_view<toml::node> node = root[section][key];
    if (!node && may_be_left_out(value, matters)) return;
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      auto found = node.value<std::string>();
      const char* end = found ? found->data() + found->size() : nullptr;
      if (found && std::from_chars(found->data(), end, value).ptr == end && !found->empty()) return;
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (auto found = node.value<std::string>()) {
        value = utf8_to_bytes(*found);
        return;
      }
    } else {
      if (auto found = node.value<T>()) {
        value = *found;
        return;
      }
    }
    bad_input("{}: does not say {}.{}; it is damaged, or another version of galvani began the campaign", path.string(),
              section, key);
  });
  record.preprocess.input = record.input;
  if (record.format == 2) {
    const Mutation& m = record.mutation_;
    Spec mutate{"mutate",
                {{"set", m.mutators},
                 {"alpha", fmt::format("{}", m.alpha)},
                 {"beta", fmt::format("{}", m.beta)},
                 {"tries", std::to_string(m.max_tries)}}};
    record.settings.generator = resolved_generator(mutate);
  }
  return record;
}

Task CampaignRecord::task() const {
  return task_of(preprocess.task).value_or(Task::classes);
}

bool CampaignRecord::by_reference() const {
  Question question;
  question.task = task();
  return question.by_reference();
}

std::string CampaignRecord::identity() const {
  std::string text;
  for_each_value(*this, [&](const char* section, const char* key, const auto& value, Matters matters) {
    if (matters != Matters::no && matters != Matters::told && !may_be_left_out(value, matters))
      text += fmt::format("{}.{}={}\n", section, key, value);
  });
  return sha256(text);
}

std::vector<std::pair<std::string, std::string>> CampaignRecord::choices() const {
  std::vector<std::pair<std::string, std::string>> result;
  for_each_setting(settings,
                   [&](const SettingInfo& info, const auto& value) { result.emplace_back(info.name, shown(value)); });
  return result;
}

std::string CampaignRecord::command() const {
  auto quoted = [](const std::string& text) {
    bool plain = !text.empty() && text.find_first_not_of(
                                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                      "_-+=./:,%@") == std::string::npos;
    if (plain) return text;
    std::string result = "'";
    for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
  };
  std::string text = "galvani fuzz " + quoted(model) + " --data " + quoted(data);
  std::vector<std::pair<std::string, std::string>> usual = CampaignRecord().choices();
  std::vector<std::pair<std::string, std::string>> own = choices();
  for (std::size_t i = 0; i < own.size(); ++i) {
    bool always = own[i].first == "guide" || own[i].first == "scheduler" || own[i].first == "generator";
    if (!always && own[i].second == usual[i].second) continue;
    if (own[i].first == "island" && own[i].second.rfind("all/", 0) == 0) {
      text += " --islands " + own[i].second.substr(4);
      continue;
    }
    text += " --" + own[i].first;
    if (own[i].second != "true") text += " " + quoted(own[i].second);
  }
  if (!style.empty()) text += " --style " + quoted(style);
  const CardFlags& p = preprocess;
  for (auto [flag, value] : {std::pair<const char*, const std::string&>{"range", p.range},
                             {"mean", p.mean},
                             {"std", p.deviation},
                             {"channels", p.channels},
                             {"layout", p.layout}})
    text += fmt::format(" --{} {}", flag, quoted(value));
  for (auto [flag, value] : {std::pair<const char*, const std::string&>{"head", p.head},
                             {"task", p.task},
                             {"model-output", p.output},
                             {"threshold", p.threshold},
                             {"tolerance", p.tolerance},
                             {"resize", p.resize},
                             {"crop", p.crop},
                             {"classes", p.classes},
                             {"label-shift", p.label_shift}}) {
    if (!value.empty()) text += fmt::format(" --{} {}", flag, quoted(value));
  }
  if (std::size_t rate = input.find('@'); rate != std::string::npos) text += " --rate " + input.substr(rate + 1);
  if (p.skip_broken) text += " --skip-broken";
  text += fmt::format(" --micro-batch {}{}", execution.micro_batch, execution.fused ? "" : " --unfused");
  return text;
}

std::vector<std::string> CampaignRecord::differences(const CampaignRecord& wanted) const {
  // Options that a generator has got since the one was written are as they were without them.
  auto resolved = [](CampaignRecord record) {
    record.settings.generator = resolved_generator(Spec::parse(record.settings.generator));
    return record;
  };
  std::vector<std::string> wanted_values;
  CampaignRecord here = resolved(wanted);
  for_each_value(here,
                 [&](const char*, const char*, const auto& value, Matters) { wanted_values.push_back(shown(value)); });
  // What an older file says of mutation stands in the generator's spec, too.
  CampaignRecord there = resolved(*this);
  there.format = wanted.format;
  std::vector<std::string> result;
  std::size_t next = 0;
  for_each_value(there, [&](const char* section, const char* key, const auto& value, Matters matters) {
    const std::string& other = wanted_values[next++];
    bool must_match = matters == Matters::yes || matters == Matters::added;
    if (!must_match || shown(value) == other) return;
    bool hash = std::string(key) == "sha256";
    // What is profiled follows from the other settings.
    if (std::string(section) == "profile" && !result.empty()) return;
    std::string name = std::string(section) == "settings" ? key : std::string(section) + " " + key;
    std::string owner = std::string(section) == "generator" || std::string(section) == "guide"
                            ? fmt::format("a file of the {}", section)
                            : fmt::format("the {}", section);
    result.push_back(hash ? fmt::format("{} has another content", owner)
                          : fmt::format("{} is {} there and {} here", name, printable(shown(value)), printable(other)));
  });
  return result;
}

double parse_duration(const std::string& text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  double factor = unit.empty() || unit == "s"    ? 1
                  : unit == "m" || unit == "min" ? 60
                  : unit == "h"                  ? 3600
                  : unit == "d"                  ? 86400
                                                 : 0;
  if (error != std::errc() || factor == 0 || !(value > 0) || !std::isfinite(value))
    bad_usage("'{}' is not a duration; write 90s, 15m, 6h or 1d", printable(text));
  return value * factor;
}

}  // namespace galvani
