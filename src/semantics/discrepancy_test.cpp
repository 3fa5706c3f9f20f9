#include "galvani/semantics/discrepancy.h"

#include <gtest/gtest.h>

#include "galvani/base/files.h"
#include "semantics/testing.h"

namespace galvani {
namespace {

// Three scenes of each kind, whose first layer has words of our own for red and blue.
struct DiscrepancyCase {
  std::unique_ptr<Network> network = testing::planted_network();
  Descriptions descriptions = testing::numbered_words(*network);
  Dataset data = testing::scenes(9, 1);

  PathFinder finder(const std::string& settings) const {
    PathOptions options = PathOptions::from(Options("paths", PathOptions::schema(), Spec::parse("paths:" + settings)));
    return {*network, descriptions, options, data.class_names};
  }
};

TEST(Discrepancy, InputsAreAsTheirOriginals) {
  DiscrepancyCase c;
  PathFinder finder = c.finder("steps=10");
  Discrepancy same = measure_discrepancy(finder, *c.network, DataView(c.data), DataView(c.data), 1);
  EXPECT_EQ(same.similarity, std::vector<double>(9, 1.0));
  EXPECT_EQ(same.below, 0);
  EXPECT_EQ(same.score(), 0);
  EXPECT_EQ(same.mean(), 1);
}

// Most scenes stay what they are; two cold ones have become red all over, so nothing speaks for cold any more.
TEST(Discrepancy, CountsOtherReasons) {
  DiscrepancyCase c;
  PathFinder finder = c.finder("text=off,steps=10");
  Dataset mutants = c.data;
  mutants.images = c.data.images.clone();
  for (int i : {1, 4}) mutants.images[i] = at::tensor({200, 30, 30}).to(at::kByte).view({3, 1, 1}).expand({3, 32, 32});
  Discrepancy found = measure_discrepancy(finder, *c.network, DataView(mutants), DataView(c.data), 0.9);
  ASSERT_EQ(found.similarity.size(), 9U);
  EXPECT_EQ(found.below, 2);
  EXPECT_DOUBLE_EQ(found.score(), 2.0 / 9);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(found.similarity[i] < 0.9, i == 1 || i == 4) << i;
  // Nothing is less than the least there is.
  EXPECT_EQ(measure_discrepancy(finder, *c.network, DataView(mutants), DataView(c.data), 0).below, 0);
}

TEST(Discrepancy, TheScoreFollowedIsThatOfTheLabel) {
  DiscrepancyCase c;
  PathFinder finder = c.finder("text=off,steps=10");
  Dataset unlabelled = c.data;
  unlabelled.labels = at::full({9}, Labelled::kUnlabelled, at::kLong);
  Dataset relabelled = c.data;
  relabelled.labels = at::zeros({9}, at::kLong);
  auto passes = [&](const Dataset& inputs) {
    return measure_discrepancy(finder, *c.network, DataView(inputs), DataView(c.data), 0.5).similarity;
  };
  // Without labels those of the originals count; a wrong one is followed in both, which are the same pixels.
  EXPECT_EQ(passes(unlabelled), passes(c.data));
  EXPECT_EQ(passes(relabelled), std::vector<double>(9, 1.0));
}

TEST(Discrepancy, OriginalsMustBeAsMany) {
  DiscrepancyCase c;
  PathFinder finder = c.finder("steps=2");
  DataView fewer = DataView(c.data).subset({0, 1});
  std::string said = testing::error_of([&] { measure_discrepancy(finder, *c.network, DataView(c.data), fewer, 1); });
  EXPECT_NE(said.find("9 inputs"), std::string::npos) << said;
}

}  // namespace
}  // namespace galvani
