#include "galvani/mutate/catalogue.h"

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

constexpr std::int64_t kMostListed = 4096;
// Drawn values have this many steps a unit, so that a rule's text is short and still exact.
constexpr double kSteps = 1e4;

// Of style transfer in NSGen.
constexpr const char* kStrengths = "strength=0.4/0.6/0.8";

// One with settings is used only where it is named, with them.
bool has_settings(const std::string& mutator) {
  const OptionSchema& schema = mutators().at(mutator).schema;
  return std::any_of(schema.begin(), schema.end(), is_setting);
}

// `w` and, of a catalogue, `only` and `group` say how to draw; the rest is the pattern.
std::string take(Spec& spec, const std::string& key) {
  std::string value;
  auto& all = spec.settings;
  auto it = std::find_if(all.begin(), all.end(), [&](const auto& setting) { return setting.first == key; });
  if (it == all.end()) return value;
  value = it->second;
  all.erase(it);
  return value;
}

double take_weight(Spec& spec) {
  std::string text = take(spec, "w");
  if (text.empty()) return 1;
  OptionInfo info{"w", 1.0, "", 1e-6, 1e6, {}};
  return std::get<double>(parse_option(spec.name, info, text));
}

const MutationCatalogue* find_catalogue(const std::string& name) {
  const auto& all = mutation_catalogues();
  auto it = std::find_if(all.begin(), all.end(), [&](const auto& catalogue) { return catalogue.name == name; });
  return it == all.end() ? nullptr : &*it;
}

// Position of the first entry above `point`, which lies below the last.
std::size_t locate(const std::vector<double>& cumulative, double point) {
  auto it = std::upper_bound(cumulative.begin(), cumulative.end(), point);
  return std::min(static_cast<std::size_t>(it - cumulative.begin()), cumulative.size() - 1);
}

}  // namespace

const std::vector<MutationCatalogue>& mutation_catalogues() {
  static const std::vector<MutationCatalogue> all = {
      {"nsgen",
       "NSGen's 95 rules",
       {{"translation", {"x=-5,y=-5", "x=-5,y=0", "x=0,y=-5", "x=0,y=0", "x=5,y=0", "x=0,y=5", "x=5,y=5"}},
        {"scale", {"ratio=0.8..0.95..0.05"}},
        {"rotation", {"angle=-30..29..1"}},
        {"contrast", {"gain=0.8..2..0.2"}},
        {"brightness", {"offset=10..70..10"}},
        {"blur",
         {"kind=box,size=3..6", "kind=gaussian,size=3/5/7", "kind=median,size=3/5",
          "kind=bilateral,size=9,sigma=75"}}}},
      {"deephunter",
       "DeepHunter's nine transformations; group=d, n or all",
       {{"contrast", {"gain=0.5..1.2..0.1"}},
        {"brightness", {"offset=-20..19..1"}},
        {"pixel-change", {"count=1..9"}},
        {"noise", {"sigma=8", "kind=salt-pepper,share=0.004", "kind=speckle,sigma=25"}},
        {"translation", {"x=-3..2,y=-3..2"}},
        {"scale", {"ratio=0.7..1.1..0.1"}},
        {"shear", {"factor=-0.6..0.5..0.1"}},
        {"rotation", {"angle=-50..49..1"}},
        {"blur",
         {"kind=box,size=3..5", "kind=gaussian,size=3/5/7", "kind=median,size=3/5",
          "kind=bilateral,size=9,sigma=75"}}}},
      {"nss",
       "NSS's seven, with parameters from ranges",
       {{"shift", {"x=0.05..0.15,y=0.05..0.15"}},
        {"rotation", {"angle=5..25"}},
        {"scale", {"ratio=0.8..1.2"}},
        {"shear", {"angle=15..30"}},
        {"contrast", {"gain=0.5..1.5,about=mean"}},
        {"brightness", {"factor=0.5..1.5"}},
        {"blur", {"kind=box,size=2..7"}}}},
      {"style",
       "colours, frequencies, weather",
       {{"colour-transfer", {kStrengths}},
        {"fourier-transfer", {kStrengths}},
        {"fog", {kStrengths}},
        {"rain", {kStrengths}},
        {"snow", {kStrengths}},
        {"frost", {kStrengths}},
        {"style-net", {kStrengths}}}},
      // Ranges as libraries of audio augmentation have them.
      {"audio",
       "sounds: level, noise, time, pitch, filters, room, clipping, gaps, coarse samples",
       {{"gain", {"db=-12..12"}},
        {"snr-noise", {"snr=5..40", "snr=5..40,colour=pink"}},
        {"time-shift", {"seconds=-0.25..0.25"}},
        {"time-stretch", {"factor=0.8..1.25"}},
        {"pitch", {"semitones=-4..4"}},
        {"low-pass", {"hz=2000..6000"}},
        {"high-pass", {"hz=60..400"}},
        {"band-pass", {"hz=100..300,octaves=3.5..5"}},
        {"echo", {"delay=0.02..0.3,decay=0.05..0.5"}},
        {"clipping", {"share=0.001..0.05"}},
        {"time-mask", {"share=0.02..0.1"}},
        {"quantise", {"bits=6..10", "law=mu,bits=5..8"}}}}};
  return all;
}

const char* usual_catalogue(SampleKind kind) {
  return kind == SampleKind::image ? "nsgen" : "audio";
}

std::string catalogue_for(const std::string& set, SampleKind kind) {
  const MutationCatalogue* known = find_catalogue(set);
  bool other = known != nullptr && kind == SampleKind::audio && set != usual_catalogue(kind);
  return other ? usual_catalogue(kind) : set;
}

const std::vector<std::string>& usual_patterns(const std::string& mutator) {
  for (const MutationCatalogue& catalogue : mutation_catalogues()) {
    for (const auto& entry : catalogue.entries) {
      if (entry.mutator == mutator) return entry.patterns;
    }
  }
  fail(ErrorCode::internal, "no catalogue has the mutator '{}'", mutator);
}

// --- patterns

RulePattern::Range RulePattern::parse_range(const Mutator& mutator, const OptionInfo& info, std::string_view text) {
  auto number = [&](std::string_view part) { return rule_value(info, parse_option(mutator.name(), info, part)); };
  Range range;
  std::size_t dots = text.find("..");
  if (!info.choices.empty() || dots == std::string_view::npos) {
    for (std::string_view rest = text;;) {
      std::size_t slash = rest.find('/');
      range.values.push_back(number(rest.substr(0, slash)));
      if (slash == std::string_view::npos) return range;
      rest.remove_prefix(slash + 1);
    }
  }
  std::string_view end = text.substr(dots + 2);
  std::size_t more = end.find("..");
  range.low = number(text.substr(0, dots));
  range.high = number(end.substr(0, more));
  if (range.low > range.high)
    bad_usage("{}: option '{}' is '{}', but a range goes from the smaller to the larger", mutator.name(), info.name,
              printable(text));
  bool real = std::holds_alternative<double>(info.fallback);
  if (real && more == std::string_view::npos) return range;
  double step = 1;
  if (more != std::string_view::npos) {
    OptionInfo step_info{info.name, 1.0, "", 1e-6, 1e6, {}};
    step = std::get<double>(parse_option(mutator.name(), step_info, end.substr(more + 2)));
  }
  double steps = std::floor((range.high - range.low) / step + 1e-9) + 1;
  if (steps > 1e6) bad_usage("{}: option '{}' has more than a million steps", mutator.name(), info.name);
  for (int i = 0; i < static_cast<int>(steps); ++i) {
    // The double nearest to the decimal: 0.8 + 2 · 0.2 is 1.2.
    double value = std::nearbyint((range.low + i * step) * 1e6) / 1e6;
    range.values.push_back(real ? value : std::nearbyint(value));
  }
  return range;
}

RulePattern::RulePattern(const Mutator& mutator, const Spec& spec) : mutator_(&mutator) {
  const OptionSchema& parameters = mutator.parameters();
  for (const auto& [key, unused] : spec.settings) {
    const std::string& name = key;
    bool known = std::any_of(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
    // The option parser knows best what to say about an unknown one; settings of the mutator were taken before.
    if (!known) Options(mutator.name(), parameters, Spec{spec.name, {{name, "0"}}});
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const OptionInfo& info = parameters[i];
    auto given = std::find_if(spec.settings.begin(), spec.settings.end(),
                              [&](const auto& setting) { return setting.first == info.name; });
    Range range;
    if (given != spec.settings.end()) {
      range = parse_range(mutator, info, given->second);
    } else if (std::int64_t free = mutator.free_values(i); free > 0) {
      range.free = free;
    } else {
      range.values = {rule_value(info, info.fallback)};
    }
    ranges_.push_back(std::move(range));
  }
  // What cannot be drawn is found now, not in the middle of a campaign.
  if (count() > 0) {
    for (const Rule& rule : rules()) mutator.check(rule);
  }
  Rng probe(0);
  for (int i = 0; i < 64 && count() == 0; ++i) mutator.check(draw(probe));
}

double RulePattern::Range::draw(Rng& rng) const {
  if (free > 0) return static_cast<double>(rng.below(static_cast<std::uint64_t>(free)));
  if (values.size() == 1) return values.front();
  if (!values.empty()) return values[rng.below(values.size())];
  return std::clamp(std::nearbyint(rng.uniform(low, high) * kSteps) / kSteps, low, high);
}

Rule RulePattern::draw(Rng& rng) const {
  Rule rule;
  rule.mutator = mutator_->index();
  for (std::size_t i = 0; i < ranges_.size(); ++i) rule.values[i] = ranges_[i].draw(rng);
  return rule;
}

std::int64_t RulePattern::count() const {
  std::int64_t product = 1;
  for (const Range& range : ranges_) {
    product *= static_cast<std::int64_t>(range.values.size());
    if (product > kMostListed) return 0;
  }
  return product;
}

std::vector<Rule> RulePattern::rules() const {
  Rule first;
  first.mutator = mutator_->index();
  std::vector<Rule> result = {first};
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    std::vector<Rule> longer;
    for (const Rule& rule : result) {
      for (double value : ranges_[i].values) {
        longer.push_back(rule);
        longer.back().values[i] = value;
      }
    }
    result = std::move(longer);
  }
  return result;
}

std::vector<Rule> RulePattern::examples(std::size_t n, Rng& rng) const {
  std::vector<Rule> result;
  for (std::size_t k = 0; k < n; ++k) {
    Rule rule = draw(rng);
    double share = n == 1 ? 0.5 : static_cast<double>(k) / static_cast<double>(n - 1);
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const Range& range = ranges_[i];
      if (range.free > 0) continue;
      auto last = static_cast<double>(range.values.size()) - 1;
      rule.values[i] = range.values.empty()
                           ? std::nearbyint((range.low + share * (range.high - range.low)) * kSteps) / kSteps
                           : range.values[static_cast<std::size_t>(std::lround(share * last))];
    }
    result.push_back(rule);
  }
  return result;
}

Rule Family::draw(Rng& rng) const {
  if (!listed.empty()) return listed[rng.below(listed.size())];
  return patterns[patterns.size() == 1 ? 0 : rng.below(patterns.size())].draw(rng);
}

std::vector<Rule> Family::examples(std::size_t n, Rng& rng) const {
  std::vector<Rule> result;
  if (!listed.empty()) {
    n = std::min(n, listed.size());
    for (std::size_t i = 0; i < n; ++i)
      result.push_back(listed[n == 1 ? listed.size() / 2 : i * (listed.size() - 1) / (n - 1)]);
    return result;
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    std::size_t first = i * n / patterns.size();
    for (const Rule& rule : patterns[i].examples((i + 1) * n / patterns.size() - first, rng)) result.push_back(rule);
  }
  return result;
}

// --- sets

MutatorSet::MutatorSet(const std::string& spec, const MutationContext& context) : spec_(spec), type_(context.type) {
  std::vector<Spec> parts = Spec::parse_list(spec);
  for (const auto& entry : mutators().entries()) {
    Spec settings{entry.name, {}};
    for (const Spec& part : parts) {
      if (part.name != entry.name) continue;
      for (const auto& [key, value] : part.settings) {
        const std::string& name = key;
        auto info =
            std::find_if(entry.schema.begin(), entry.schema.end(), [&](const auto& i) { return i.name == name; });
        if (info == entry.schema.end() || !is_setting(*info)) continue;
        if (!settings.settings.empty() && settings.settings.front().second != value)
          bad_usage("{}: only one {} can be in use", entry.name, name);
        if (settings.settings.empty()) settings.settings.emplace_back(name, value);
      }
    }
    mutators_.push_back(make_mutator(settings, context));
  }
  for (const Spec& part : parts) add(part);
  double sum = 0, sum_pixel = 0;
  for (const Family& family : families_) {
    sum += family.weight;
    if (!family.mutator->affine()) sum_pixel += family.weight;
    cumulative_.push_back(sum);
    cumulative_pixel_.push_back(sum_pixel);
  }
}

void MutatorSet::add(Spec spec) {
  double weight = take_weight(spec);
  const MutationCatalogue* catalogue = find_catalogue(spec.name);
  bool all = spec.name == "all";
  if (catalogue != nullptr || all) {
    bool grouped = spec.name == "deephunter";
    std::string group = grouped ? take(spec, "group") : "";
    if (!group.empty()) {
      OptionInfo info{"group", std::string("all"), "", {}, {}, {"d", "n", "all"}};
      parse_option(spec.name, info, group);
    }
    std::string only = catalogue != nullptr ? take(spec, "only") : "";
    OptionSchema schema = {{"w", 1.0, "", {}, {}, {}}};
    if (catalogue != nullptr) schema.push_back({"only", std::string(), "", {}, {}, {}});
    if (grouped) schema.push_back({"group", std::string("all"), "", {}, {}, {}});
    Options(spec.name, schema, spec);  // refuses anything else
    std::size_t before = families_.size();
    auto wanted = [&](const Mutator& mutator) {
      return (!all || mutator.kind() == type_.kind) &&
             (group.empty() || group == "all" || group == to_string(mutator.group())) &&
             (only.empty() || only == mutator.name()) && mutator.missing().empty() && !has_settings(mutator.name());
    };
    for (const auto& mutator : mutators_) {
      if (all && wanted(*mutator)) add_family(mutator->name(), usual_patterns(mutator->name()), weight);
    }
    if (catalogue == nullptr) return;
    for (const auto& entry : catalogue->entries) {
      auto it =
          std::find_if(mutators_.begin(), mutators_.end(), [&](const auto& m) { return m->name() == entry.mutator; });
      if (wanted(**it)) add_family(entry.mutator, entry.patterns, weight);
    }
    if (families_.size() == before && !only.empty())
      bad_usage("{}: has no mutator '{}' that can be used", spec.name, printable(only));
    if (families_.size() == before) bad_usage("{}: none of its mutators can be used", spec.name);
    return;
  }
  std::vector<std::string> known = mutators().names();
  for (const auto& each : mutation_catalogues()) known.push_back(each.name);
  known.emplace_back("all");
  if (mutators().find(spec.name) == nullptr) {
    std::string near = nearest_word(spec.name, known);
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    bad_usage("there is no mutator or catalogue called '{}'; {}", printable(spec.name),
              near.empty() ? "known are " + list : "did you mean '" + near + "'?");
  }
  // Only parameters make a pattern; settings were used when the mutator was made.
  const OptionSchema& schema = mutators().at(spec.name).schema;
  for (const OptionInfo& info : schema) {
    if (is_setting(info)) take(spec, info.name);
  }
  if (spec.settings.empty()) {
    add_family(spec.name, usual_patterns(spec.name), weight);
  } else {
    add_family(spec.name, {spec.str().substr(spec.name.size() + 1)}, weight);
  }
}

void MutatorSet::add_family(const std::string& name, const std::vector<std::string>& patterns, double weight) {
  auto it = std::find_if(mutators_.begin(), mutators_.end(), [&](const auto& m) { return m->name() == name; });
  const Mutator& mutator = **it;
  if (!type_.shape.empty() && mutator.kind() != type_.kind)
    bad_usage("{}: changes {}, but these are {}; --mutators {} is made for them", name,
              SampleType{mutator.kind(), {}, 0}.noun(), type_.noun(), usual_catalogue(type_.kind));
  if (std::string missing = mutator.missing(); !missing.empty()) bad_usage("{}: {}", name, missing);
  Family family{&mutator, weight, {}, {}};
  bool listable = true;
  for (const std::string& pattern : patterns) {
    family.patterns.emplace_back(mutator, Spec::parse(pattern.empty() ? name : name + ":" + pattern));
    listable = listable && family.patterns.back().count() > 0;
  }
  for (const RulePattern& pattern : family.patterns) {
    if (!listable) break;
    for (Rule& rule : pattern.rules()) family.listed.push_back(rule);
  }
  families_.push_back(std::move(family));
}

const Mutator& MutatorSet::mutator(const Rule& rule) const {
  if (rule.mutator < 0 || static_cast<std::size_t>(rule.mutator) >= mutators_.size())
    fail(ErrorCode::internal, "a rule without a mutator");
  return *mutators_[static_cast<std::size_t>(rule.mutator)];
}

std::string MutatorSet::files_sha256() const {
  std::string all;
  for (const auto& mutator : mutators_) all += mutator->files_sha256();
  return all.empty() ? "" : sha256(all);
}

bool MutatorSet::draw(Rng& rng, bool affine_allowed, Rule& rule) const {
  const std::vector<double>& cumulative = affine_allowed ? cumulative_ : cumulative_pixel_;
  if (cumulative.empty() || cumulative.back() <= 0) return false;
  rule = families_[locate(cumulative, rng.uniform() * cumulative.back())].draw(rng);
  return true;
}

Rule MutatorSet::parse(const std::string& text) const {
  Spec spec = Spec::parse(text);
  const auto& entry = mutators().at(spec.name);
  const Mutator& mutator = *mutators_[static_cast<std::size_t>(&entry - mutators().entries().data())];
  if (std::string missing = mutator.missing(); !missing.empty()) bad_usage("{}: {}", spec.name, missing);
  return mutator.parse(spec);
}

std::vector<std::string> catalogue_rules(const std::string& name) {
  MutatorSet set(name, {});
  std::vector<std::string> result;
  for (const Family& family : set.families()) {
    if (family.listed.empty())
      bad_usage("the rules of '{}' cannot be listed: {} has endlessly many", name, family.mutator->name());
    for (const Rule& rule : family.listed) result.push_back(set.text(rule));
  }
  return result;
}

}  // namespace galvani
