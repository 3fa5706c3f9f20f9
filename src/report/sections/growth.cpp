#include <algorithm>

#include "galvani/base/plot.h"
#include "report/section.h"

namespace galvani {
namespace {

constexpr std::size_t kPagePoints = 300;

std::string plots(const CampaignReader& reader) {
  std::vector<TimelinePoint> timeline = reader.timeline(kPagePoints);
  PlotPanel coverage{"Coverage", "iterations", "", {{"coverage", {}}}, false};
  PlotPanel faults{"Faults", "iterations", "", {{"all", {}}, {"distinct", {}}, {"kept", {}}}, false};
  PlotPanel times{"Faults over time", "seconds of work", "", {{"all", {}}, {"distinct", {}}, {"kept", {}}}, false};
  PlotPanel seeds{"Seeds broken", "iterations", "", {{"broken", {}}}, false};
  std::vector<std::int64_t> broken = reader.broken_at();
  for (const TimelinePoint& point : timeline) {
    auto x = static_cast<double>(point.iterations);
    coverage.percent = point.coverable > 0;
    coverage.series[0].points.emplace_back(x, point.coverage());
    double counts[] = {static_cast<double>(point.faults), static_cast<double>(point.distinct_faults),
                       static_cast<double>(point.kept_faults)};
    for (std::size_t i = 0; i < 3; ++i) {
      faults.series[i].points.emplace_back(x, counts[i]);
      times.series[i].points.emplace_back(point.seconds, counts[i]);
    }
    auto until = std::upper_bound(broken.begin(), broken.end(), point.iterations);
    seeds.series[0].points.emplace_back(x, static_cast<double>(until - broken.begin()));
  }
  bool measured = std::any_of(timeline.begin(), timeline.end(), [](const TimelinePoint& p) { return p.covered > 0; });
  std::string result;
  for (const PlotPanel& panel :
       measured ? std::vector{seeds, faults, times, coverage} : std::vector{seeds, faults, times})
    result += "<div>" + plot_svg({panel}, 1) + "</div>";
  return result;
}

class GrowthSection : public Section {
 public:
  std::string name() const override { return "growth"; }
  Places make(const PageSubject& subject, Json&, Page&) const override { return {{"PLOTS", plots(subject.reader)}}; }
};

}  // namespace

std::unique_ptr<Section> make_growth_section() {
  return std::make_unique<GrowthSection>();
}

}  // namespace galvani
