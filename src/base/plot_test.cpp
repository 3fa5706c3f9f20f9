#include "galvani/base/plot.h"

#include <gtest/gtest.h>

#include <cmath>

namespace galvani {
namespace {

TEST(Plot, TicksAreRoundAndReachTheLargestValue) {
  EXPECT_EQ(axis_ticks(100, 4), (std::vector<double>{0, 25, 50, 75, 100}));
  EXPECT_EQ(axis_ticks(93, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(axis_ticks(7, 4), (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(axis_ticks(0, 4).back(), 1);
}

TEST(Plot, DrawsEverySeriesAndEscapesText) {
  PlotPanel panel{"a < b", "inputs", "covered", {{"one", {{0, 0}, {10, 0.5}}}, {"two", {{0, 0}, {10, 1}}}}, true};
  std::string svg = plot_svg({panel, panel});
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find(">two<"), std::string::npos);
  EXPECT_NE(svg.find(">100%<"), std::string::npos);
  std::size_t lines = 0;
  for (std::size_t at = svg.find("stroke-width"); at != std::string::npos; at = svg.find("stroke-width", at + 1))
    ++lines;
  EXPECT_EQ(lines, 4U);
}

TEST(Plot, NamesOfSeriesDoNotOverlap) {
  std::string longer = "nc:threshold=0.75,scale=true";
  PlotPanel panel{"", "", "", {{longer, {}}, {"kmnc:k=100", {}}, {"nbc", {}}, {"snac", {}}}, false};
  std::string svg = plot_svg({panel});
  auto place = [&](const std::string& name) {
    std::size_t end = svg.find(">" + name + "<");
    std::size_t x = svg.rfind("x=\"", end), y = svg.rfind("y=\"", end);
    return std::make_pair(std::stod(svg.substr(x + 3)), std::stod(svg.substr(y + 3)));
  };
  // The long one and the next do not fit a line; the short ones do.
  EXPECT_LT(place(longer).second, place("kmnc:k=100").second);
  EXPECT_EQ(place("kmnc:k=100").second, place("nbc").second);
  EXPECT_GT(place("nbc").first, place("kmnc:k=100").first + 40);
  // A name that is wider than the panel is cut.
  panel.series[0].name = std::string(400, 'a');
  EXPECT_EQ(plot_svg({panel}).find(std::string(60, 'a')), std::string::npos);
}

TEST(Plot, HeatMapsSayTheirNumbersAndEscapeText) {
  HeatMap map{"<map>", "model", "tests", {"a", "b"}, {"first", "second"}, {{0, 1}, {0.125, std::nan("")}}};
  std::string svg = heat_map_svg(map);
  for (const char* text :
       {"&lt;map&gt;", ">0.0%<", ">100.0%<", ">12.5%<", ">-<", "fill=\"#ffffff\"", "fill=\"#0072b2\""})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
}

}  // namespace
}  // namespace galvani
