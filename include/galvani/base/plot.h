// Line charts as SVG: small panels side by side, with axes one can read and a file one can put into a paper.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace galvani {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct PlotPanel {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<PlotSeries> series;  // more than one: a legend is drawn
  bool percent = false;            // y is a share of one, shown as 0..100%
};

// Panels in rows of `columns`.
std::string plot_svg(const std::vector<PlotPanel>& panels, int columns = 3);

// Shares of one in a grid, darker where they are larger; what is not a number stays empty.
struct HeatMap {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<double>> values;  // [rows][columns]
};
std::string heat_map_svg(const HeatMap& map);

// Round numbers that cover [0, most], about `count` of them: 0, 50, 100, ...
std::vector<double> axis_ticks(double most, int count);

}  // namespace galvani
