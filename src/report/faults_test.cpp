#include "galvani/report/faults.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/generate/generator.h"
#include "galvani/report/shrink.h"
#include "report/testing.h"

namespace galvani {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// On a line: 0 leads, 1 joins it, 3 is too far; 1.4 is nearer to 0 than to 3.
TEST(ClusterFeatures, ByHand) {
  at::Tensor points = at::tensor({0.0F, 1.0F, 3.0F, 1.4F, 0.2F}).unsqueeze(1);
  std::vector<FaultCluster> found = cluster_features(points, Pairs(5, {1, 2}), 1.5);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].members, (std::vector<std::size_t>{0, 1, 3, 4}));
  EXPECT_EQ(found[0].representative, 1U) << "the mean is 0.65";
  EXPECT_NEAR(found[0].radius, (1 + 0 + 0.4 + 0.8) / 4, 1e-6);
  EXPECT_EQ(found[1].members, (std::vector<std::size_t>{2}));
  EXPECT_EQ(found[1].label, 1);
}

TEST(ClusterFeatures, KindsAreKeptApart) {
  std::vector<FaultCluster> found = cluster_features(at::zeros({4, 3}), Pairs{{0, 1}, {0, 2}, {0, 1}, {1, 0}}, 10);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].members, (std::vector<std::size_t>{0, 2}));
  EXPECT_TRUE(cluster_features(at::zeros({0, 3}), {}, 1).empty());
}

TEST(MedianDistance, ByHand) {
  // Distances 1, 2, 3.
  EXPECT_DOUBLE_EQ(median_distance(at::tensor({0.0F, 1.0F, 3.0F}).unsqueeze(1)), 2);
  EXPECT_EQ(median_distance(at::zeros({1, 2})), 0);
}

// Fails while pixel 5 differs by at least 40 and either of 9 and 10 is changed: two pixels must be left.
TEST(ShrinkPixels, LeavesOnlyWhatIsNeeded) {
  at::Tensor reference = at::zeros({1, 4, 4}, at::kByte);
  at::Tensor image = at::full({1, 4, 4}, 160, at::kByte);
  FailCheck fails = [](const std::vector<at::Tensor>& images) {
    std::vector<bool> result;
    for (const at::Tensor& i : images) {
      const auto* p = i.data_ptr<std::uint8_t>();
      result.push_back(p[5] >= 40 && (p[9] > 0 || p[10] > 0));
    }
    return result;
  };
  at::Tensor small = shrink_pixels(reference, image, fails);
  EXPECT_TRUE(fails({small})[0]);
  EXPECT_EQ(small.ne(0).sum().item<int>(), 2);
  EXPECT_EQ(small.max().item<int>(), 40) << "a quarter of the strength is enough";
  EXPECT_EQ(image.min().item<int>(), 160) << "the image itself is left alone";
}

TEST(ShrinkPixels, NothingToDo) {
  at::Tensor image = at::randint(256, {3, 5, 4}, at::kByte);
  FailCheck always = [](const std::vector<at::Tensor>& images) { return std::vector<bool>(images.size(), true); };
  EXPECT_TRUE(at::equal(shrink_pixels(image, image, always), image));
  EXPECT_TRUE(at::equal(shrink_pixels(image, 255 - image, always), image));
}

class FaultsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_folder = new TemporaryFolder("faults");
    shared_subject = new testing::FuzzedSubject();
    shared_subject->fuzz(*shared_folder / "run");
  }
  static void TearDownTestSuite() {
    delete shared_folder;
    delete shared_subject;
  }
  static TemporaryFolder* shared_folder;
  static testing::FuzzedSubject* shared_subject;
};
TemporaryFolder* FaultsTest::shared_folder = nullptr;
testing::FuzzedSubject* FaultsTest::shared_subject = nullptr;

TEST_F(FaultsTest, QueriesAndGroupsAgree) {
  CampaignReader reader(*shared_folder / "run");
  std::vector<FaultGroup> groups = group_faults(reader, {});
  ASSERT_FALSE(groups.empty());
  std::int64_t sum = 0;
  for (const FaultGroup& group : groups) sum += group.faults;
  EXPECT_EQ(sum, reader.counters().faults);
  FaultQuery query;
  query.mutator = groups[0].mutator;
  query.min_confidence = groups[0].confidence;
  query.filter.label = groups[0].label;
  query.filter.most = 2;
  std::vector<FaultRecord> found;
  for_each_match(reader, query, [&](const FaultRecord& fault) { found.push_back(fault); });
  ASSERT_GT(found.size(), 0U);
  EXPECT_LE(found.size(), 2U);
  for (const FaultRecord& fault : found) {
    EXPECT_EQ(kind_of(fault.rule), query.mutator);
    EXPECT_GE(fault.confidence, query.min_confidence);
    EXPECT_EQ(fault.label, query.filter.label);
  }
}

TEST_F(FaultsTest, FeaturesAreOfLengthOne) {
  CampaignReader reader(*shared_folder / "run");
  FaultFilter filter;
  filter.most = 20;
  std::string tap;
  at::Tensor features = fault_features(reader, *shared_subject->network, reader.faults(filter), tap);
  EXPECT_EQ(features.size(0), 20);
  EXPECT_TRUE(at::allclose(features.norm(2, {1}), at::ones({20})));
  EXPECT_EQ(tap, "conv2") << "of conv1, conv2, fc";
}

TEST_F(FaultsTest, ShrunkFaultsStillFailAndAreSmaller) {
  CampaignReader reader(*shared_folder / "run");
  for (bool keep_class : {false, true}) {
    FaultShrinker shrinker(reader, *shared_subject->network, {keep_class});
    FaultFilter filter;
    filter.most = 25;
    std::vector<ShrunkFault> all;
    for (const FaultRecord& fault : reader.faults(filter)) {
      ShrunkFault r = shrinker.shrink(fault);
      EXPECT_TRUE(r.repeatable);
      EXPECT_LE(r.rules.size(), r.rules_before.size());
      EXPECT_GE(r.rules.size(), 1U);
      Request alone;
      alone.alone = true;
      auto verdict = shared_subject->network->run(r.image.unsqueeze(0), alone).logits.argmax(1).item<std::int64_t>();
      EXPECT_EQ(verdict, r.predicted);
      EXPECT_NE(verdict, fault.label);
      EXPECT_TRUE(!keep_class || verdict == fault.predicted);
      EXPECT_TRUE(r.rules.size() < r.rules_before.size() || r.after.pixels <= r.before.pixels);
      all.push_back(std::move(r));
    }
    write_shrunk(*shared_folder / "minimised", reader, all);
    std::string csv = read_file(*shared_folder / "minimised" / "minimised.csv");
    EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), all.size() + 1);
    EXPECT_TRUE(std::filesystem::exists(*shared_folder / "minimised" / "sheet.png"));
  }
}

TEST_F(FaultsTest, WhatIsGoneOrHealedIsRefused) {
  CampaignReader reader(*shared_folder / "run");
  FaultShrinker shrinker(reader, *shared_subject->network);
  FaultRecord fault = reader.fault(1);
  fault.file = "faults/none.png";
  EXPECT_THROW(shrinker.shrink(fault), Error);
  fault = reader.fault(1);
  fault.label = fault.predicted;
  EXPECT_THROW(shrinker.shrink(fault), Error);
}

}  // namespace
}  // namespace galvani
