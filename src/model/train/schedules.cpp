#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "galvani/base/error.h"
#include "galvani/model/train.h"

namespace galvani {
namespace {

constexpr double kPi = 3.14159265358979323846;

Schedule cosine(const Options& options) {
  double warmup = options.real("warmup");
  return [warmup](double epoch, double epochs) {
    if (epoch < warmup) return (epoch + 0.01) / (warmup + 0.01);
    double t = (epoch - warmup) / std::max(1e-9, epochs - warmup);
    return 0.5 * (1 + std::cos(kPi * std::min(1.0, t)));
  };
}

Schedule every_so_often(const Options& options) {
  double every = options.real("every");
  double factor = options.real("factor");
  return [every, factor](double epoch, double) { return std::pow(factor, std::floor(epoch / every)); };
}

Schedule milestones(const Options& options) {
  std::vector<double> at;
  const std::string& text = options.text("at");
  for (std::size_t start = 0; start <= text.size();) {
    std::size_t slash = std::min(text.find('/', start), text.size());
    std::string part = text.substr(start, slash - start);
    char* end = nullptr;
    at.push_back(std::strtod(part.c_str(), &end));
    if (part.empty() || *end != '\0')
      bad_usage("milestones: option 'at' is '{}', but must be like 20/30", printable(text));
    start = slash + 1;
  }
  double factor = options.real("factor");
  return [at, factor](double epoch, double) {
    double result = 1;
    for (double milestone : at) result *= epoch >= milestone ? factor : 1;
    return result;
  };
}

// Up to the full rate over the first part, down to almost nothing over the rest (Smith 2018).
Schedule one_cycle(const Options& options) {
  double rise = options.real("rise");
  return [rise](double epoch, double epochs) {
    double t = epoch / epochs;
    if (t < rise) return 0.04 + 0.96 * t / rise;
    return std::max(1e-3, 0.5 * (1 + std::cos(kPi * (t - rise) / (1 - rise))));
  };
}

// CycleGAN's: the full rate, then straight down to nothing.
Schedule constant_then_linear(const Options& options) {
  double from = options.real("from");
  return [from](double epoch, double epochs) { return std::min(1.0, (1 - epoch / epochs) / (1 - from)); };
}

}  // namespace

const ScheduleRegistry& schedules() {
  static const ScheduleRegistry registry(
      "schedule",
      {{"constant", "the same rate throughout", {}, [](const Options&) { return [](double, double) { return 1.0; }; }},
       {"cosine",
        "half a cosine from the full rate to zero",
        {{"warmup", 0.5, "epochs of linear rise before it", 0.0, 1000.0, {}}},
        cosine},
       {"step",
        "times a factor every few epochs",
        {{"every", 10.0, "epochs between steps", 1e-3, 1e6, {}},
         {"factor", 0.1, "what the rate is multiplied by", 0.0, 1.0, {}}},
        every_so_often},
       {"milestones",
        "times a factor at given epochs",
        {{"at", std::string("20/30"), "epochs, separated by '/'", {}, {}, {}},
         {"factor", 0.1, "what the rate is multiplied by", 0.0, 1.0, {}}},
        milestones},
       {"linear",
        "the full rate, then straight down to zero",
        {{"from", 0.5, "share of the epochs before it falls", 0.0, 0.99, {}}},
        constant_then_linear},
       {"onecycle",
        "linear rise, then half a cosine down",
        {{"rise", 0.3, "share of the epochs that rise", 0.01, 0.99, {}}},
        one_cycle}});
  return registry;
}

}  // namespace galvani
