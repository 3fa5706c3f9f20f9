#include "galvani/report/robustness.h"

#include <fmt/format.h>

#include "galvani/base/options.h"
#include "report/section.h"

namespace galvani {
namespace {

class RobustnessSection : public Section {
 public:
  std::string name() const override { return "robustness"; }
  bool applies(const PageSubject& subject) const override {
    return Spec::parse(subject.reader.record().settings.generator).name == "attack";
  }

  Places make(const PageSubject& subject, Json& data, Page&) const override {
    Robustness r = robustness_of(subject.reader);
    Json rows = Json::array();
    for (const RobustnessLevel& level : r.levels)
      rows.push_back({"eps " + level.name, fmt::format("{:.2f}%", level.accuracy * 100),
                      fmt::format("{:.1f} to {:.1f}%", level.low * 100, level.high * 100),
                      fmt::format("{} of {} tried inputs broke", level.broken, r.seeds.tried)});
    data["robustness"] = {{"attack", r.attack}, {"rows", rows}};
    return {{"PLOT", robustness_svg(r)}};
  }
};

}  // namespace

std::unique_ptr<Section> make_robustness_section() {
  return std::make_unique<RobustnessSection>();
}

}  // namespace galvani
