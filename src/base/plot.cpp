#include "galvani/base/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
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
constexpr double kLegendLeft = 24;
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

// Where a series' name stands below a panel.
struct LegendEntry {
  std::string name;
  double x = 0;
  std::size_t line = 0;
};

// As many names a line as fit, by what their letters take on average; one series alone needs no legend.
std::vector<LegendEntry> legend_of(const PlotPanel& panel) {
  constexpr double kLetter = 6.4;
  constexpr double kMark = 17;
  constexpr double kSpace = 14;
  constexpr double kWidth = kPanelWidth - kLegendLeft - kRight;
  constexpr auto kMostLetters = static_cast<std::size_t>((kWidth - kMark) / kLetter);
  std::vector<LegendEntry> entries;
  if (panel.series.size() < 2) return entries;
  LegendEntry next;
  for (const PlotSeries& series : panel.series) {
    next.name = printable(series.name, kMostLetters);
    double width = kMark + kLetter * static_cast<double>(next.name.size());
    if (next.x > 0 && next.x + width > kWidth) {
      next.x = 0;
      ++next.line;
    }
    entries.push_back(next);
    next.x += width + kSpace;
  }
  return entries;
}

double legend_height(const PlotPanel& panel) {
  std::vector<LegendEntry> entries = legend_of(panel);
  return entries.empty() ? 0 : kLegendLine * static_cast<double>(entries.back().line + 1);
}

std::string draw(const PlotPanel& panel, double x0, double y0, double height, double legend_space) {
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
  std::vector<LegendEntry> legend = legend_of(panel);
  double left = x0 + kLeft;
  double right = x0 + kPanelWidth - kRight;
  double top = y0 + kTop;
  double bottom = y0 + height - kBottom - legend_space;
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
    if (legend.empty()) continue;
    double x = x0 + kLegendLeft + legend[i].x;
    double y = bottom + 50 + kLegendLine * static_cast<double>(legend[i].line);
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"3\" fill=\"{}\"/>\n", x, y - 5, colour);
    svg += text(x + 17, y, "start", legend[i].name);
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
  // Panels side by side have axes of the same height.
  double legend = 0;
  for (const PlotPanel& panel : panels) legend = std::max(legend, legend_height(panel));
  double height = kPanelHeight + legend;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" fill=\"#222\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kPanelWidth * columns, height * rows);
  for (int i = 0; i < n; ++i) {
    int row = i / columns;
    int column = i % columns;
    svg += draw(panels[static_cast<std::size_t>(i)], kPanelWidth * column, height * row, height, legend);
  }
  return svg + "</svg>\n";
}

}  // namespace galvani
