#include "galvani/fuzz/settings.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <charconv>
#include <cmath>
#include <sstream>
#include <type_traits>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/utf8.h"

namespace galvani {
namespace {

enum class Matters {
  no,     // where things were, which may change
  fixed,  // part of what the campaign is, but nothing that a command can ask for
  yes,    // must be the same for a folder to be gone on with
  added,  // the same, but earlier versions did not know it: what is not set is not written either
};

// Whether a record without this value says the same.
template <class T>
bool may_be_left_out(const T& value, Matters matters) {
  return matters == Matters::added && value == T();
}

// Every value of a record: visit(section, key, value, matters).
template <class Record, class Visit>
void for_each_value(Record& r, Visit&& visit) {
  constexpr Matters kYes = Matters::yes;
  constexpr Matters kNo = Matters::no;
  auto& s = r.settings;
  visit("galvani", "version", r.version, kNo);
  visit("settings", "guide", s.guide, kYes);
  visit("settings", "scheduler", s.scheduler, kYes);
  visit("settings", "mutators", s.mutators, kYes);
  visit("settings", "seeds", s.seeds, kYes);
  visit("settings", "energy", s.energy, kYes);
  visit("settings", "batch", s.batch, kYes);
  visit("settings", "alpha", s.alpha, kYes);
  visit("settings", "beta", s.beta, kYes);
  visit("settings", "max-tries", s.max_tries, kYes);
  visit("settings", "patience", s.patience, kYes);
  visit("settings", "stop-at-kept", s.stop_at_kept, kYes);
  visit("settings", "reset-when-full", s.reset_when_full, kYes);
  visit("settings", "seed", s.seed, kYes);
  visit("settings", "taps", s.taps, kYes);
  visit("settings", "neurons", s.neurons, kYes);
  visit("model", "path", r.model, kNo);
  visit("model", "sha256", r.model_sha256, kYes);
  visit("model", "classes", r.classes, kYes);
  visit("model", "input", r.input, kYes);
  visit("model", "range", r.preprocess.range, kYes);
  visit("model", "mean", r.preprocess.mean, kYes);
  visit("model", "std", r.preprocess.deviation, kYes);
  visit("model", "channels", r.preprocess.channels, kYes);
  visit("model", "layout", r.preprocess.layout, kYes);
  visit("execution", "micro-batch", r.execution.micro_batch, kYes);
  visit("execution", "channels-last", r.execution.channels_last, kYes);
  visit("execution", "fused", r.execution.fused, Matters::added);
  visit("data", "spec", r.data, kNo);
  visit("data", "sha256", r.data_sha256, kYes);
  visit("profile", "source", r.profile, kNo);
  visit("profile", "sha256", r.profile_sha256, kYes);
  visit("style", "source", r.style, kNo);
  visit("style", "sha256", r.style_sha256, kYes);
  visit("style-network", "sha256", r.style_network_sha256, kYes);
  visit("probe", "model", r.probe.model, Matters::fixed);
  visit("probe", "mutation", r.probe.mutation, Matters::fixed);
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
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& e) {
    bad_input("{}: is not TOML: {}", path.string(), printable(e.description()));
  }
  CampaignRecord record;
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
  return record;
}

std::string CampaignRecord::identity() const {
  std::string text;
  for_each_value(*this, [&](const char* section, const char* key, const auto& value, Matters matters) {
    if (matters != Matters::no && !may_be_left_out(value, matters))
      text += fmt::format("{}.{}={}\n", section, key, value);
  });
  return sha256(text);
}

std::vector<std::pair<std::string, std::string>> CampaignRecord::choices() const {
  std::vector<std::pair<std::string, std::string>> result;
  for_each_value(*this, [&](const char* section, const char* key, const auto& value, Matters) {
    if (std::string(section) == "settings") result.emplace_back(key, shown(value));
  });
  return result;
}

std::vector<std::string> CampaignRecord::differences(const CampaignRecord& wanted) const {
  std::vector<std::string> wanted_values;
  for_each_value(wanted,
                 [&](const char*, const char*, const auto& value, Matters) { wanted_values.push_back(shown(value)); });
  std::vector<std::string> result;
  std::size_t next = 0;
  for_each_value(*this, [&](const char* section, const char* key, const auto& value, Matters matters) {
    const std::string& other = wanted_values[next++];
    bool must_match = matters == Matters::yes || matters == Matters::added;
    if (!must_match || shown(value) == other) return;
    bool hash = std::string(key) == "sha256";
    // What is profiled follows from the other settings.
    if (std::string(section) == "profile" && !result.empty()) return;
    std::string name = std::string(section) == "settings" ? key : std::string(section) + " " + key;
    result.push_back(hash ? fmt::format("the {} has another content", section)
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
