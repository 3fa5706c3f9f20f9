#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/plot.h"
#include "galvani/base/text.h"

namespace galvani {
namespace {

constexpr double kCellWidth = 78;
constexpr double kCellHeight = 34;
constexpr double kHeatTop = 66;     // title and names of columns
constexpr double kHeatBottom = 34;  // title of the columns
constexpr double kHeatMargin = 16;
constexpr double kNameLetter = 6.4;
constexpr std::size_t kMostNameLetters = 28;

// From white to the blue of the charts.
std::string heat_colour(double share) {
  double t = std::clamp(share, 0.0, 1.0);
  auto mixed = [t](double to) { return static_cast<int>(std::lround(255 + (to - 255) * t)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(0), mixed(114), mixed(178));
}

std::string heat_text(double x, double y, const char* anchor, const std::string& what, const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escape_markup(what));
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  std::size_t letters = map.y_title.size();
  for (const std::string& name : map.rows) letters = std::max(letters, printable(name, kMostNameLetters).size());
  double left = kHeatMargin + kNameLetter * static_cast<double>(letters) + 12;
  double width = left + kCellWidth * static_cast<double>(map.columns.size()) + kHeatMargin;
  width = std::max(width, 2 * kHeatMargin + kNameLetter * 1.2 * static_cast<double>(map.title.size()));
  double height = kHeatTop + kCellHeight * static_cast<double>(map.rows.size()) + kHeatBottom;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\" fill=\"#333\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  svg += heat_text(kHeatMargin, 22, "start", map.title, R"( font-size="13" font-weight="bold")");
  svg += heat_text(kHeatMargin, kHeatTop - 10, "start", map.y_title, " fill=\"#777\"");
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    svg += heat_text(left + kCellWidth * (static_cast<double>(c) + 0.5), kHeatTop - 10, "middle",
                     printable(map.columns[c], 12));
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    double y = kHeatTop + kCellHeight * static_cast<double>(r);
    svg += heat_text(left - 8, y + kCellHeight / 2 + 4, "end", printable(map.rows[r], kMostNameLetters));
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      double value = map.values.at(r).at(c), x = left + kCellWidth * static_cast<double>(c);
      bool known = std::isfinite(value);
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"#ddd\"/>\n", x, y,
          kCellWidth, kCellHeight, known ? heat_colour(value) : "#f4f4f4");
      svg += heat_text(x + kCellWidth / 2, y + kCellHeight / 2 + 4, "middle",
                       known ? fmt::format("{:.1f}%", value * 100) : "-", value > 0.55 ? " fill=\"white\"" : "");
    }
  }
  svg += heat_text(left + kCellWidth * static_cast<double>(map.columns.size()) / 2, height - 12, "middle", map.x_title,
                   " fill=\"#777\"");
  return svg + "</svg>\n";
}

}  // namespace galvani
