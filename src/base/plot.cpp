#include "galvani/base/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/text.h"

namespace galvani {
namespace {

constexpr double kPanelWidth = 320;
constexpr double kPanelHeight = 230;
constexpr double kLeft = 62;
constexpr double kRight = 16;
constexpr double kTop = 34;
constexpr double kBottom = 46;
constexpr double kLegendLine = 15;
// Colours that people with a colour vision deficiency tell apart (Okabe and Ito).
const std::vector<std::string> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                           "#56b4e9", "#000000", "#999933", "#882255", "#44aa99"};

std::string number(double value, bool percent) {
  if (percent) return fmt::format("{:g}%", std::round(value * 1e6) / 1e4);
  if (std::abs(value) >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (std::abs(value) >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", std::round(value * 1e9) / 1e9);
}

std::string text(double x, double y, const std::string& anchor, const std::string& what, const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escape_markup(what));
}

// Two series a line; one alone needs no legend.
double legend_height(std::size_t series) {
  std::size_t lines = (series + 1) / 2;
  return series > 1 ? kLegendLine * static_cast<double>(lines) : 0;
}

std::string draw(const PlotPanel& panel, double x0, double y0, double height) {
  double most_x = 0;
  double most_y = 0;
  for (const PlotSeries& series : panel.series) {
    for (auto [x, y] : series.points) {
      most_x = std::max(most_x, x);
      if (std::isfinite(y)) most_y = std::max(most_y, y);
    }
  }
  std::vector<double> ticks_x = axis_ticks(most_x, 4);
  std::vector<double> ticks_y = axis_ticks(most_y, 5);
  double legend = legend_height(panel.series.size());
  double left = x0 + kLeft;
  double right = x0 + kPanelWidth - kRight;
  double top = y0 + kTop;
  double bottom = y0 + height - kBottom - legend;
  auto at_x = [&](double x) { return left + (right - left) * x / ticks_x.back(); };
  auto at_y = [&](double y) { return bottom - (bottom - top) * y / ticks_y.back(); };
  std::string svg = text(left, y0 + 20, "start", panel.title, R"( font-size="13" font-weight="bold")");
  for (double tick : ticks_y) {
    svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#e2e2e2\"/>\n", left,
                       at_y(tick), right, at_y(tick));
    svg += text(left - 6, at_y(tick) + 4, "end", number(tick, panel.percent));
  }
  for (double tick : ticks_x) svg += text(at_x(tick), bottom + 16, "middle", number(tick, false));
  svg += fmt::format(R"(<path d="M{:.1f},{:.1f}V{:.1f}H{:.1f}" fill="none" stroke="#444"/>)", left, top, bottom, right);
  svg += text((left + right) / 2, bottom + 34, "middle", panel.x_title);
  if (!panel.y_title.empty())
    svg += text(0, 0, "middle", panel.y_title,
                fmt::format(" transform=\"translate({:.1f},{:.1f}) rotate(-90)\"", x0 + 14, (top + bottom) / 2));
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const std::string& colour = kColours[i % kColours.size()];
    std::string path;
    for (auto [x, y] : panel.series[i].points) {
      if (std::isfinite(y)) path += fmt::format("{}{:.2f},{:.2f}", path.empty() ? "M" : "L", at_x(x), at_y(y));
    }
    if (!path.empty())
      svg +=
          fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"/>\n",
                      path, colour);
    if (panel.series.size() < 2) continue;
    double x = left + (right - left) / 2 * static_cast<double>(i % 2);
    std::size_t line = i / 2;
    double y = bottom + 50 + kLegendLine * static_cast<double>(line);
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"3\" fill=\"{}\"/>\n", x, y - 5, colour);
    svg += text(x + 17, y, "start", panel.series[i].name);
  }
  return svg;
}

}  // namespace

std::vector<double> axis_ticks(double most, int count) {
  if (!(most > 0) || !std::isfinite(most)) most = 1;
  double raw = most / count;
  double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= raw * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks = {0};
  while (ticks.back() < most * 0.9999) ticks.push_back(step * static_cast<double>(ticks.size()));
  return ticks;
}

std::string plot_svg(const std::vector<PlotPanel>& panels, int columns) {
  auto n = static_cast<int>(panels.size());
  columns = std::clamp(columns, 1, std::max(1, n));
  int rows = (n + columns - 1) / columns;
  std::size_t most_series = 1;
  for (const PlotPanel& panel : panels) most_series = std::max(most_series, panel.series.size());
  double height = kPanelHeight + legend_height(most_series);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" fill=\"#222\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kPanelWidth * columns, height * rows);
  for (int i = 0; i < n; ++i) {
    int row = i / columns;
    int column = i % columns;
    svg += draw(panels[static_cast<std::size_t>(i)], kPanelWidth * column, height * row, height);
  }
  return svg + "</svg>\n";
}

}  // namespace galvani
