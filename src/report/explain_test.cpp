#include "galvani/report/explain.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "report/testing.h"

namespace galvani {
namespace {

class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() {
    descriptions_.model = subject_.network->identity();
    for (int tap : subject_.network->select_taps("default")) {
      const Tap& from = subject_.network->taps()[static_cast<std::size_t>(tap)];
      DescribedLayer layer{from.name, {}};
      for (std::int64_t n = 0; n < from.neurons(); ++n) {
        DescribedNeuron neuron;
        neuron.words = from.name + " sees <" + std::to_string(n) + ">";
        neuron.sure = n % 2 == 0;
        layer.neurons.push_back(neuron);
      }
      descriptions_.layers.push_back(layer);
    }
  }

  PathFinder finder(const std::string& settings = "steps=50,rule=trapezoid") {
    PathOptions options = PathOptions::from(Options("paths", PathOptions::schema(), Spec::parse("paths:" + settings)));
    return {*subject_.network, descriptions_, options, {}};
  }
  std::vector<Explanation> explained(PathFinder& by, std::int64_t n, std::int64_t target) {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < n; ++i) names.push_back("digit " + std::to_string(i));
    return explain(*subject_.network, by, subject_.data.images.narrow(0, 0, n), names,
                   at::full({n}, target, at::kLong));
  }

  testing::FuzzedSubject subject_;
  Descriptions descriptions_;
};

TEST_F(ExplainTest, StepsAreThoseOfThePath) {
  PathFinder by = finder();
  std::vector<Explanation> rows = explained(by, 3, -1);
  at::Tensor images = subject_.data.images.narrow(0, 0, 3);
  std::vector<DecisionPath> paths =
      by.find(images, subject_.data.labels.narrow(0, 0, 3).contiguous(), subject_.network->run(images).logits);
  ASSERT_EQ(rows.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Explanation& row = rows[i];
    EXPECT_EQ(row.verdict, subject_.data.labels[static_cast<std::int64_t>(i)].item<std::int64_t>());
    EXPECT_EQ(row.target, row.verdict);
    EXPECT_EQ(row.verdict_name, std::to_string(row.verdict));
    EXPECT_EQ(row.path.neurons, paths[i].neurons);
    EXPECT_EQ(row.text, by.text(paths[i]));
    ASSERT_EQ(row.steps.size(), descriptions_.layers.size());
    for (std::size_t layer = 0; layer < row.steps.size(); ++layer) {
      const ExplainedStep& step = row.steps[layer];
      EXPECT_EQ(step.tap, descriptions_.layers[layer].tap);
      EXPECT_EQ(step.words, step.tap + " sees <" + std::to_string(step.neuron) + ">");
      EXPECT_EQ(step.sure, step.neuron % 2 == 0);
      EXPECT_NEAR(step.whole, 1, 0.05) << "nothing goes around a layer of a LeNet";
      bool map = layer + 1 < row.steps.size();  // the last layer of a LeNet is dense
      ASSERT_EQ(step.heat.defined(), map) << step.tap;
      if (!map) continue;
      EXPECT_EQ(step.heat.sizes(), (std::vector<std::int64_t>{28, 28}));
      EXPECT_EQ(step.heat.min().item<float>(), 0);
      EXPECT_LE(step.heat.max().item<float>(), 1);
      EXPECT_EQ(step.active.sizes(), step.heat.sizes());
    }
  }
}

TEST_F(ExplainTest, AnotherClassMayBeFollowed) {
  PathFinder by = finder();
  int risen = 0;
  for (std::int64_t other = 0; other < 10; ++other) {
    Explanation row = explained(by, 1, other)[0];
    EXPECT_EQ(row.target, other);
    EXPECT_EQ(row.verdict, subject_.data.labels[0].item<std::int64_t>());
    if (row.path.rise <= 0 || other == row.verdict) continue;
    ++risen;
    // All of the last layer's flow to a score goes through its own neuron.
    EXPECT_EQ(row.steps.back().neuron, other);
    EXPECT_NEAR(row.steps.back().share, 1, 1e-3);
  }
  EXPECT_GT(risen, 0) << "no other score is larger than at the baseline";
}

TEST_F(ExplainTest, PathsPartAtTheFirstNeuronThatDiffers) {
  Explanation a;
  a.path.neurons = {1, 2, 3};
  Explanation b = a;
  EXPECT_EQ(parting(a, b), -1);
  b.path.neurons = {1, 5, 4};
  EXPECT_EQ(parting(a, b), 1);
}

TEST_F(ExplainTest, Pictures) {
  PathFinder by = finder();
  ExplainPicture picture;
  picture.title = "Fault <1>";
  picture.rows = explained(by, 2, -1);
  picture.compared = true;
  picture.similarity = 0.625;
  std::string svg = draw(picture, PictureFormat::svg);
  EXPECT_NE(svg.find("Fault &lt;1&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("Fault <1>"), std::string::npos);
  EXPECT_NE(svg.find("similarity of the reasons 0.625"), std::string::npos);
  EXPECT_NE(svg.find("digit 1"), std::string::npos);
  std::string html = draw(picture, PictureFormat::html);
  EXPECT_NE(html.find("<title>Fault &lt;1&gt;</title>"), std::string::npos);
  EXPECT_NE(html.find("a photo of a "), std::string::npos);
  std::string png = draw(picture, PictureFormat::png);
  EXPECT_EQ(png.substr(1, 3), "PNG");
  EXPECT_THROW(draw({}, PictureFormat::svg), Error);
}

TEST_F(ExplainTest, OptionsThatLeaveNeuronsOutExplainNothing) {
  PathFinder by = finder("words=label");
  EXPECT_THROW(explained(by, 1, -1), Error);
}

}  // namespace
}  // namespace galvani
