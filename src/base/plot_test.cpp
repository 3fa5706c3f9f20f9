#include "galvani/base/plot.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace galvani
