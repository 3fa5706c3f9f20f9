#include "galvani/semantics/path.h"

#include <gtest/gtest.h>

#include "galvani/model/evaluate.h"
#include "semantics/testing.h"

namespace galvani {
namespace {

PathOptions options_of(const std::string& settings) {
  return PathOptions::from(Options("paths", PathOptions::schema(), Spec::parse("paths:" + settings)));
}

struct PathCase {
  std::unique_ptr<Network> network = testing::planted_network();
  Descriptions descriptions = testing::numbered_words(*network);
  Dataset data = testing::scenes(6, 1);
  std::vector<DecisionPath> paths(PathFinder& finder) const {
    return finder.find(data.images, data.labels, network->run(data.images).logits);
  }
  PathFinder finder(const std::string& settings) const {
    return {*network, descriptions, options_of(settings), {"warm", "cold", "grey"}};
  }
};

// The score of "warm" flows through the neuron for red and through its own output, that of "cold" through blue.
TEST(PathFinder, FollowsTheScoreOfTheClass) {
  PathCase c;
  PathFinder finder = c.finder("steps=20");
  std::vector<DecisionPath> paths = c.paths(finder);
  at::Tensor verdicts = predict(*c.network, c.data.images).labels;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto label = c.data.labels.data_ptr<std::int64_t>()[i];
    EXPECT_EQ(paths[i].labels[0], verdicts.data_ptr<std::int64_t>()[i]);
    if (label < 2) {
      EXPECT_EQ(paths[i].neurons[0], label == 0 ? 0 : 3);
    }
  }
  EXPECT_EQ(paths[0].labels.size(), 1U);
  EXPECT_EQ(finder.text(paths[0]), "a photo of a warm with red");  // said once
  EXPECT_EQ(finder.text(paths[1]), "a photo of a cold with blue, cold");
  EXPECT_EQ(finder.passes(), 6 * 20);
}

TEST(PathFinder, Similarity) {
  PathCase c;
  DecisionPath a{{0, 0}, {1, 1}, {0}, 1, {}};
  DecisionPath b{{3, 1}, {1, 1}, {1}, 1, {}};
  DecisionPath mixed{{0, 1}, {1, 1}, {0}, 1, {}};
  PathFinder texts = c.finder("steps=2");
  std::vector<double> similar = texts.similarity({{&a, &a}, {&a, &b}, {&a, &mixed}});
  EXPECT_EQ(similar[0], 1);
  EXPECT_LT(similar[1], similar[2]);
  EXPECT_LT(similar[2], 1);
  PathFinder sets = c.finder("text=off");
  EXPECT_EQ(sets.similarity({{&a, &a}, {&a, &b}, {&a, &mixed}}), (std::vector<double>{1, 0, 1.0 / 3}));
}

TEST(PathFinder, AblationsAndControls) {
  PathCase c;
  PathFinder label = c.finder("words=label,labels=2");
  std::vector<DecisionPath> paths = c.paths(label);
  EXPECT_TRUE(paths[0].neurons.empty());
  EXPECT_EQ(label.passes(), 0);
  EXPECT_EQ(label.text(paths[0]).rfind("a photo of a warm or ", 0), 0U) << label.text(paths[0]);
  PathFinder neurons = c.finder("words=neurons,steps=5");
  EXPECT_EQ(neurons.text(c.paths(neurons)[1]), "a photo with blue, cold");
  PathFinder all = c.finder("select=all");
  std::string text = all.text(c.paths(all)[1]);
  EXPECT_EQ(text.rfind("a photo of a cold with red, ", 0), 0U) << text;
  EXPECT_NE(text.find("cold"), std::string::npos);
  PathFinder one = c.finder("layers=1,steps=5");
  EXPECT_EQ(c.paths(one)[0].neurons.size(), 1U);
  EXPECT_EQ(one.layers()[0].tap, c.descriptions.layers[1].tap);
  EXPECT_NE(label.spec(), neurons.spec());
  EXPECT_NE(testing::error_of([] { options_of("text=off,words=label"); }), "");
  EXPECT_NE(testing::error_of([] { options_of("select=all,words=neurons"); }), "");
  EXPECT_NE(testing::error_of([&] { c.finder("encoder=nothing"); }), "");
}

}  // namespace
}  // namespace galvani
