// Values worked out by hand, or published by others: what each criterion counts, in numbers a reader can check.
#include <gtest/gtest.h>

#include <cmath>

#include "coverage/testing.h"
#include "galvani/base/error.h"
#include "galvani/coverage/surprise.h"

namespace galvani {
namespace {

using testing::given;
using testing::layout_of;
using testing::profile_of;

using Rows = std::vector<std::vector<float>>;
using Ids = std::vector<std::uint64_t>;

std::unique_ptr<Criterion> criterion(const std::string& spec, const TraceLayout& layout, const Rows& training = {},
                                     const std::vector<std::int64_t>& predicted = {}) {
  std::shared_ptr<const Profile> profile;
  if (!training.empty()) profile = profile_of(layout, spec, given(training, predicted));
  return make_criterion(Spec::parse(spec), {layout, profile});
}

// The features of each input.
std::vector<Ids> features(const Criterion& criterion, const Traces& traces) {
  Features found;
  EXPECT_TRUE(criterion.features(traces, found));
  std::vector<Ids> result;
  for (std::size_t i = 0; i < found.ends.size(); ++i)
    result.emplace_back(found.ids.begin() + static_cast<std::ptrdiff_t>(found.begin_of(i)),
                        found.ids.begin() + static_cast<std::ptrdiff_t>(found.ends[i]));
  return result;
}

// Three layers, two inputs, as published with the metrics of others.
const Rows kPublished = {{.1F, .4F, .9F, .4F, .3F, .2F, .1F, .6F, .8F, .2F, .3F, .4F, .4F},
                         {.1F, .9F, .9F, .4F, .3F, .9F, .1F, .6F, .8F, .2F, .9F, .4F, .4F}};
const std::vector<std::int64_t> kPublishedLayers = {4, 5, 4};

TEST(Golden, PublishedNeuronActivation) {
  TraceLayout layout = layout_of(kPublishedLayers);
  auto found = features(*criterion("nac:threshold=0.55,scale=false", layout), given(kPublished));
  EXPECT_EQ(found[0].size(), 3U);
  EXPECT_EQ(found[1].size(), 6U);
}

TEST(Golden, PublishedMultisection) {
  TraceLayout layout = layout_of(kPublishedLayers);
  // Lows 0, 0, .1 and highs 1, 1, .95 of the three layers.
  Rows training = {{0, 0, 0, 0, 0, 0, 0, 0, 0, .1F, .1F, .1F, .1F},
                   {1, 1, 1, 1, 1, 1, 1, 1, 1, .95F, .95F, .95F, .95F}};
  auto found = features(*criterion("kmnc:k=2", layout, training), given(kPublished));
  EXPECT_EQ(found[0].size(), 13U);
  EXPECT_EQ(found[1].size(), 13U);
}

TEST(Golden, PublishedTopNeurons) {
  TraceLayout layout = layout_of(kPublishedLayers);
  auto found = features(*criterion("tknc:k=2", layout), given(kPublished));
  // Of two equal values the first leads: .4 at position 1 of layer 1, at position 2 of layer 3.
  EXPECT_EQ(found[0], (Ids{1, 2, 7, 8, 11, 12}));
  EXPECT_EQ(found[1], (Ids{1, 2, 5, 8, 10, 11}));
}

TEST(Golden, NeuronsAreScaledOverTheirTap) {
  // 0..8 scaled: 0, .25, .75, 1; strictly above .75 is the last alone. A tap of equal values has none.
  auto nc = criterion("nc", layout_of({4, 2}));
  EXPECT_EQ(features(*nc, given({{0, 2, 6, 8, 5, 5}}))[0], (Ids{3}));
  nc->add(given({{0, 2, 6, 8, 5, 5}, {8, 0, 0, 0, 1, 0}}));
  EXPECT_DOUBLE_EQ(nc->score(), 3.0 / 6);
}

TEST(Golden, SectionsAreClosedAbove) {
  // [0, 10] in 5 sections: ]0,2] ... ]8,10], with 0 in the first; the second neuron never moved and has none.
  auto kmnc = criterion("kmnc:k=5", layout_of({2}), {{0, 3}, {10, 3}});
  std::vector<std::pair<float, int>> table = {{-0.1F, -1}, {0, 0},    {2, 0},  {2.001F, 1},
                                              {4, 1},      {9.9F, 4}, {10, 4}, {10.1F, -1}};
  for (auto [value, section] : table) {
    Ids expected = section < 0 ? Ids{} : Ids{static_cast<std::uint64_t>(section)};
    EXPECT_EQ(features(*kmnc, given({{value, 3}}))[0], expected) << value;
  }
  EXPECT_EQ(kmnc->covered().total, 5);
}

TEST(Golden, CornersAreBeyondTheRangeNotOnIt) {
  Rows training = {{0, -1}, {1, 1}};
  auto nbc = criterion("nbc", layout_of({2}), training);
  auto snac = criterion("snac", layout_of({2}), training);
  Traces inputs = given({{0, 1}, {-0.5F, 2}, {1.5F, -3}});
  EXPECT_EQ(features(*nbc, inputs), (std::vector<Ids>{{}, {0, 3}, {1, 2}}));
  EXPECT_EQ(features(*snac, inputs), (std::vector<Ids>{{}, {1}, {0}}));
  nbc->add(inputs);
  EXPECT_DOUBLE_EQ(nbc->score(), 1);
}

TEST(Golden, PatternsAreSetsUnlessOrdered) {
  TraceLayout layout = layout_of({4});
  Traces inputs = given({{9, 8, 1, 0}, {8, 9, 0, 1}, {9, 1, 8, 0}});
  auto sets = criterion("tknp:k=2", layout);
  sets->add(inputs);
  EXPECT_EQ(sets->score(), 2);
  auto lists = criterion("tknp:k=2,ordered=true", layout);
  lists->add(inputs);
  EXPECT_EQ(lists->score(), 3);
}

TEST(Golden, ClustersAreFartherThanT) {
  // One neuron, T = 10 on squared distances: 3 is within 9 of 0; 3.2 is 10.24 away; 6.3 is within 9.61 of 3.2.
  auto cc = criterion("cc:distance=10", layout_of({1}));
  EXPECT_EQ(cc->add(given({{0}, {3}, {3.2F}, {6.3F}, {-4}})), (std::vector<double>{1, 0, 1, 0, 1}));
}

TEST(Golden, ClustersDefaultToTheNumberOfClasses) {
  auto cc = criterion("cc", layout_of({1}, 100));
  EXPECT_EQ(cc->add(given({{0}, {10}, {10.1F}})), (std::vector<double>{1, 0, 1}));
}

TEST(Golden, NeuralCoverageByHand) {
  // Covariance of (0,0) and (2,4): [[1,2],[2,4]], mean size 9/4. Their mean (1,2) as third input shrinks it to 2/3.
  auto nlc = criterion("nlc", layout_of({2}));
  std::vector<double> gains = nlc->add(given({{0, 0}, {2, 4}, {1, 2}}));
  EXPECT_DOUBLE_EQ(gains[0], 0);
  EXPECT_DOUBLE_EQ(gains[1], 2.25);
  EXPECT_DOUBLE_EQ(gains[2], 0);
  EXPECT_DOUBLE_EQ(nlc->score(), 2.25);
  auto pooled = criterion("nlc:order=free", layout_of({2}));
  pooled->add(given({{0, 0}, {2, 4}, {1, 2}}));
  EXPECT_DOUBLE_EQ(pooled->score(), 1.5);
  // (-2,2) after the first two: mean (0,2), covariance [[8/3, 0],[0, 8/3]]... by 1/3 sums: xx 8/3, xy 4/3, yy 8/3.
  auto third = criterion("nlc:order=free", layout_of({2}));
  third->add(given({{0, 0}, {2, 4}, {-2, 2}}));
  EXPECT_NEAR(third->score(), (8.0 / 3 + 2 * 4.0 / 3 + 8.0 / 3) / 4, 1e-12);
}

std::vector<double> scores(const std::string& spec, const TraceLayout& layout, const Rows& training,
                           const std::vector<std::int64_t>& classes, const Traces& inputs) {
  std::string name = spec.substr(0, spec.find(':'));
  std::string criterion = name == "dsa" ? "dsc" : name == "mdsa" ? "mdsc" : "lsc";
  auto profile = profile_of(layout, criterion, given(training, classes));
  auto score = make_surprise(Spec::parse(spec), layout, *profile);
  std::vector<double> all = score->score(inputs);
  for (std::int64_t i = 0; i < inputs.size(); ++i) {
    double alone = score->score_alone(inputs, i);
    EXPECT_TRUE((std::isnan(alone) && std::isnan(all[static_cast<std::size_t>(i)])) ||
                std::abs(alone - all[static_cast<std::size_t>(i)]) < 1e-9);
  }
  return all;
}

TEST(Golden, DistanceSurprise) {
  TraceLayout layout = layout_of({1}, 3);
  Rows training = {{0}, {2}, {5}, {9}};
  std::vector<std::int64_t> classes = {0, 0, 1, 1};
  // 3 as class 0: nearest is 2, from there the nearest of another class is 5: 1/3. From the input it is 2 away: 1/2.
  // 8 as class 1: nearest is 9, from there 2 is 7 away: 1/7. Class 2 has no training traces.
  Traces inputs = given({{3}, {8}, {1}}, {0, 1, 2});
  std::vector<double> dsa = scores("dsa", layout, training, classes, inputs);
  EXPECT_DOUBLE_EQ(dsa[0], 1.0 / 3);
  EXPECT_DOUBLE_EQ(dsa[1], 1.0 / 7);
  EXPECT_TRUE(std::isnan(dsa[2]));
  EXPECT_DOUBLE_EQ(scores("dsa:from=input", layout, training, classes, inputs)[0], 1.0 / 2);
}

TEST(Golden, LikelihoodSurprise) {
  // Class 0 at 0 and 2: variance 2, Scott's factor 2^(-1/5), so kernels of variance 2 * 2^(-2/5).
  double h2 = 2 * std::pow(2.0, -0.4);
  auto normal = [&](double d) { return std::exp(-d * d / (2 * h2)) / std::sqrt(2 * M_PI * h2); };
  std::vector<double> lsa =
      scores("lsa", layout_of({1}, 2), {{0}, {2}, {7}, {8}}, {0, 0, 1, 1}, given({{1}, {30}}, {0, 0}));
  EXPECT_NEAR(lsa[0], -std::log((normal(1) + normal(-1)) / 2), 1e-12);
  // Far away the density underflows; its logarithm does not.
  EXPECT_NEAR(lsa[1], 28 * 28 / (2 * h2) + 0.5 * std::log(2 * M_PI * h2) + std::log(2), 1e-9);
}

TEST(Golden, MahalanobisSurprise) {
  // (±1, 0) and (0, ±2): covariance diag(2/3, 8/3). (2, 0) is sqrt(4 / (2/3)) away, (0, 2) is sqrt(4 / (8/3)).
  std::vector<double> mdsa = scores("mdsa", layout_of({2}, 1), {{1, 0}, {-1, 0}, {0, 2}, {0, -2}}, {0, 0, 0, 0},
                                    given({{2, 0}, {0, 2}, {0, 0}}, {0, 0, 0}));
  EXPECT_NEAR(mdsa[0], std::sqrt(6.0), 1e-12);
  EXPECT_NEAR(mdsa[1], std::sqrt(1.5), 1e-12);
  EXPECT_NEAR(mdsa[2], 0, 1e-12);
}

TEST(Golden, SingularCovariancesAreReported) {
  // Two features that are always equal.
  Rows training;
  for (int i = 0; i < 20; ++i) training.push_back({static_cast<float>(i), static_cast<float>(i)});
  for (const char* spec : {"lsc", "mdsc"}) {
    auto made = criterion(spec, layout_of({2}, 1), training, std::vector<std::int64_t>(20, 0));
    ASSERT_EQ(made->notes().size(), 1U) << spec;
    EXPECT_NE(made->notes()[0].find("ridge"), std::string::npos);
    made->add(given({{3, 3}}, {0}));
    EXPECT_EQ(made->covered().covered, 1);
  }
}

TEST(Golden, SurpriseIsCutIntoBuckets) {
  TraceLayout layout = layout_of({1}, 2);
  auto dsc = criterion("dsc:width=0.25,upper=1", layout, {{0}, {2}, {5}, {9}}, {0, 0, 1, 1});
  // 1/3 is in bucket 1; 0 in bucket 0; 4 as class 0 is 2/3: bucket 2; 6 as class 0 is 4/3: beyond the last.
  EXPECT_EQ(features(*dsc, given({{3}, {2}, {4}, {6}}, {0, 0, 0, 0})), (std::vector<Ids>{{1}, {0}, {2}, {}}));
  EXPECT_EQ(dsc->covered().total, 4);
}

TEST(Golden, PathsHoldAlphaOfTheRelevance) {
  // Relevance 4, 3, 2, 1, -9: 4 + 3 reaches 70% of the positive 10.
  TraceLayout layout = layout_of({5}, 1);
  auto npc = criterion("npc:buckets=10", layout, {{4, 3, 2, 1, -9}}, {0});
  // The same path: similarity 1, the last bucket. {0, 4} against {0, 1}: 1 of 3. {3, 4}: nothing in common.
  Traces inputs = given({{8, 6, 0, 0, 0}, {6, 0, 0, 0, 4}, {0, 0, 0, 5, 5}}, {0, 0, 0});
  EXPECT_EQ(features(*npc, inputs), (std::vector<Ids>{{9}, {3}, {0}}));
}

TEST(Golden, ClassPathsKeepWhatBetaOfTheMembersShare) {
  TraceLayout layout = layout_of({3}, 1);
  // Neuron 0 is on all five paths, neuron 1 on three of them (60%), neuron 2 on two: the class's path is {0, 1}.
  Rows training = {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 0, 1}, {1, 0, 1}};
  auto npc = criterion("npc:alpha=1,buckets=10", layout, training, {0, 0, 0, 0, 0});
  EXPECT_EQ(features(*npc, given({{1, 1, 0}, {1, 0, 0}}, {0, 0})), (std::vector<Ids>{{9}, {5}}));
}

// One neuron that is its first input; the second input plays no part.
TEST(Golden, CausalEdges) {
  TraceLayout layout = layout_of({1}, 1, 2);
  layout.layers[0]->weight = at::tensor({1.0F, 0.0F}).view({1, 2});
  auto inputs = [&](std::int64_t n) {
    at::Tensor x = at::empty({n, 2});
    for (std::int64_t i = 0; i < n; ++i) {
      x[i][0] = i % 2 == 0 ? 0.0F : 1.0F;
      x[i][1] = i / 2 % 2 == 0 ? 0.0F : 1.0F;
    }
    Traces traces = make_traces(x.narrow(1, 0, 1), at::zeros({n}, at::kLong));
    traces.layers = {{x, x.unsqueeze(2)}};
    return traces;
  };
  auto profile = profile_of(layout, "cac", inputs(4));
  auto cac = make_criterion(Spec::parse("cac:splits=2,sections=range"), {layout, profile});
  std::vector<double> gains = cac->add(inputs(40));
  // The first edge: 10 zeros and 10 ones make every expected count 5, and chi² is then 20, above 3.84. The second: the
  // table stays even, and chi² below.
  for (std::size_t i = 0; i < gains.size(); ++i) EXPECT_EQ(gains[i], i == 19 ? 1 : 0) << i;
  EXPECT_EQ(cac->covered().covered, 1);
  EXPECT_EQ(cac->covered().total, 2);
}

}  // namespace
}  // namespace galvani
