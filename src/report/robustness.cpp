#include "galvani/report/robustness.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "galvani/base/error.h"
#include "galvani/base/plot.h"
#include "galvani/generate/attack.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr double kAnySize = std::numeric_limits<double>::infinity();

// The smallest example of a seed.
struct Example {
  std::int64_t label = 0;
  double size = kAnySize;  // what it is sorted into levels by
  double l0 = 0, l2 = 0, linf = 0, snr = 0;
};

std::map<std::int64_t, Example> smallest_examples(const CampaignReader& reader, const AttackPlan& plan) {
  std::map<std::int64_t, Example> result;
  const char* norm = to_string(plan.attacks.front()->norm());
  reader.for_each_fault({}, [&](const FaultRecord& fault) {
    std::map<std::string, double> figures = figures_of(fault);
    Example example{fault.label,     figures[plan.bounded() ? "eps" : norm],
                    figures["l0"],   figures["l2"],
                    figures["linf"], figures["snr"]};
    Example& known = result[fault.seed];
    if (example.size < known.size) known = example;
  });
  return result;
}

ChangeSizes::Size size_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (double value : values) sum += value;
  std::size_t half = values.size() / 2;
  double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {sum / static_cast<double>(values.size()), median};
}

RobustnessLevel level_of(const std::map<std::int64_t, Example>& examples, const SeedFigures& seeds, double radius,
                         double full) {
  RobustnessLevel level;
  level.radius = radius;
  level.name = std::isinf(radius) ? "any size" : radius_text(radius, full);
  std::array<std::vector<double>, 4> sizes;
  for (const auto& [seed, example] : examples) {
    if (example.size > radius * (1 + 1e-9)) continue;
    ++level.broken;
    sizes[0].push_back(example.l0);
    sizes[1].push_back(example.l2);
    sizes[2].push_back(example.linf);
    sizes[3].push_back(example.snr);
  }
  level.sizes = {size_of(std::move(sizes[0])), size_of(std::move(sizes[1])), size_of(std::move(sizes[2])),
                 size_of(std::move(sizes[3]))};
  double standing =
      seeds.tried > 0 ? static_cast<double>(seeds.tried - level.broken) / static_cast<double>(seeds.tried) : 1;
  level.accuracy = seeds.accuracy() * standing;
  auto left = static_cast<std::int64_t>(std::llround(level.accuracy * static_cast<double>(seeds.looked_at)));
  ShareInterval interval = wilson_interval(left, seeds.looked_at);
  level.low = interval.low;
  level.high = interval.high;
  return level;
}

std::vector<ClassRobustness> by_class(const CampaignReader& reader, const std::map<std::int64_t, Example>& examples,
                                      double radius) {
  std::vector<ClassRobustness> classes(static_cast<std::size_t>(reader.classes()));
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i].name = reader.class_name(static_cast<std::int64_t>(i));
  auto of = [&](std::int64_t label) -> ClassRobustness& { return classes.at(static_cast<std::size_t>(label)); };
  for (const SeedRecord& seed : reader.seeds()) {
    ++of(seed.label).inputs;
    ++of(seed.label).right;
    of(seed.label).tried += seed.picks > 0 ? 1 : 0;
  }
  for (const WrongSeedRecord& wrong : reader.wrong_seeds()) ++of(wrong.label).inputs;
  for (const auto& [seed, example] : examples) of(example.label).broken += example.size <= radius * (1 + 1e-9) ? 1 : 0;
  return classes;
}

}  // namespace

Robustness robustness_of(const CampaignReader& reader) {
  Spec generator = Spec::parse(reader.record().settings.generator);
  if (generator.name != "attack")
    bad_usage("{}: its inputs come from the generator {}, not from an attack", reader.folder().string(),
              generator.name);
  AttackPlan plan = plan_attack(generator);
  Robustness result;
  Spec attack = Spec::parse(plan.attacks.front()->spec());
  auto& options = attack.settings;
  options.erase(std::remove_if(options.begin(), options.end(), [](const auto& o) { return o.first == "eps"; }),
                options.end());
  result.attack = attack.str();
  result.norm = plan.attacks.front()->norm();
  result.bounded = plan.bounded();
  result.seeds = reader.seed_figures();
  result.passes = reader.counters().passes;
  result.seconds = reader.seconds();
  std::map<std::int64_t, Example> examples = smallest_examples(reader, plan);
  std::vector<double> radii = plan.radii;
  if (radii.empty() || radii.front() > 0) radii.insert(radii.begin(), 0);
  if (!plan.bounded()) radii.push_back(kAnySize);
  result.type = reader.type();
  auto full = static_cast<double>(result.type.full());
  for (double radius : radii) result.levels.push_back(level_of(examples, result.seeds, radius, full));
  // A seed that broke within a smaller radius is not attacked again, so what was valid at a level adds to that.
  std::map<std::string, std::int64_t> fooled;
  for (const YieldRecord& kind : reader.kinds()) fooled[kind.name] = kind.valid;
  for (std::size_t i = 1; i < result.levels.size(); ++i) {
    RobustnessLevel& level = result.levels[i];
    if (plan.bounded()) level.broken_before = result.levels[i - 1].broken + fooled[plan.kind(i - 1, full)];
    if (!plan.bounded() && std::isinf(level.radius)) level.broken_before = fooled[plan.kind(0, full)];
  }
  result.classes = by_class(reader, examples, result.last().radius);
  return result;
}

Figures figures_of(const Robustness& r) {
  auto tried = static_cast<double>(std::max<std::int64_t>(1, r.seeds.tried));
  const RobustnessLevel last = r.levels.empty() ? RobustnessLevel() : r.last();
  const ChangeSizes& s = last.sizes;
  return {{"clean", r.seeds.accuracy()},
          {"robust", last.accuracy},
          {"asr", static_cast<double>(last.broken) / tried},
          {"asr-before-rounding", static_cast<double>(last.broken_before) / tried},
          {"mean-l0", s.l0.mean},
          {"mean-l2", s.l2.mean},
          {"mean-linf", s.linf.mean},
          {"median-l0", s.l0.median},
          {"median-l2", s.l2.median},
          {"median-linf", s.linf.median},
          {"mean-snr", s.snr.mean},
          {"median-snr", s.snr.median},
          {"passes", static_cast<double>(r.passes)},
          {"seconds", r.seconds}};
}

Json robustness_json(const Robustness& r) {
  auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  auto size = [](const ChangeSizes::Size& s) { return Json{{"mean", s.mean}, {"median", s.median}}; };
  Json j = {{"attack", r.attack},          {"norm", to_string(r.norm)},   {"bounded", r.bounded},
            {"clean", r.seeds.accuracy()}, {"inputs", r.seeds.looked_at}, {"right", r.seeds.right},
            {"tried", r.seeds.tried},      {"passes", r.passes},          {"seconds", r.seconds}};
  j["levels"] = Json::array();
  for (const RobustnessLevel& level : r.levels)
    j["levels"].push_back({{"eps", number(level.radius)},
                           {"name", level.name},
                           {"accuracy", level.accuracy},
                           {"low", level.low},
                           {"high", level.high},
                           {"broken", level.broken},
                           {"broken_before_rounding", level.broken_before < 0 ? Json() : Json(level.broken_before)},
                           {"l0", size(level.sizes.l0)},
                           {"l2", size(level.sizes.l2)},
                           {"linf", size(level.sizes.linf)}});
  if (r.type.kind == SampleKind::audio) {
    for (std::size_t i = 0; i < r.levels.size(); ++i) j["levels"][i]["snr"] = size(r.levels[i].sizes.snr);
  }
  j["classes"] = Json::array();
  for (const ClassRobustness& c : r.classes)
    j["classes"].push_back({{"name", c.name},
                            {"inputs", c.inputs},
                            {"clean", c.clean()},
                            {"robust", c.robust()},
                            {"tried", c.tried},
                            {"broken", c.broken}});
  return j;
}

std::string robustness_svg(const Robustness& r) {
  PlotPanel panel;
  panel.title = "accuracy under " + Spec::parse(r.attack).name;
  panel.x_title = fmt::format("eps ({}, of the full scale)", to_string(r.norm));
  panel.y_title = "accuracy";
  panel.percent = true;
  PlotSeries series{"accuracy", {}};
  for (const RobustnessLevel& level : r.levels) {
    if (std::isfinite(level.radius)) series.points.emplace_back(level.radius, level.accuracy);
  }
  panel.series.push_back(std::move(series));
  return plot_svg({panel}, 1);
}

}  // namespace galvani
