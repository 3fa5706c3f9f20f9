#include "galvani/quality/measure.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/data/dataset.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/model/evaluate.h"
#include "quality/testing.h"

namespace galvani {
namespace {

const QualityFigure& figure(const Quality& quality, const std::string& id) {
  for (const QualityFigure& f : quality.figures) {
    if (f.id == id) return f;
  }
  throw std::runtime_error("no figure " + id);
}

Dataset by_hand(const std::vector<int>& values, const std::vector<std::int64_t>& labels) {
  Dataset set;
  set.name = "by hand";
  set.images = at::tensor(values, at::kInt).to(at::kByte).view({-1, 1, 1, 2});
  set.labels = at::tensor(labels, at::kLong);
  return set;
}

// Class 1 where the first value is above half.
std::unique_ptr<Network> half_network() {
  at::Tensor weight = at::tensor({-1.0, 1.0, 0.0, 0.0}).view({2, 2});
  return testing::linear_network({1, 1, 2}, weight, at::tensor({0.5, -0.5}));
}

// Four pairs of class 0; the first original is wrong as it is, the second and fourth tests are misclassified, too.
TEST(PairsTest, ByHand) {
  auto network = half_network();
  DataView originals(by_hand({200, 100, 100, 100, 50, 100, 100, 0}, {0, 0, 0, 0}));
  DataView tests(by_hand({200, 100, 200, 100, 60, 100, 200, 0}, {0, 0, 0, 0}));
  auto pairs = paired_tests(tests, originals);
  Quality found = measure_quality(*network, *pairs, {});
  EXPECT_EQ(found.tests, 4);
  EXPECT_EQ(found.looked_at, 4);
  EXPECT_EQ(found.misclassified, 3);
  EXPECT_DOUBLE_EQ(figure(found, "mr").value, 0.75);
  EXPECT_EQ(figure(found, "mr").n, 4);
  EXPECT_FALSE(figure(found, "mr").counted);
  EXPECT_DOUBLE_EQ(figure(found, "asr").value, 2.0 / 3);
  EXPECT_EQ(figure(found, "asr").n, 3);
  EXPECT_EQ(figure(found, "acac").n, 3);
  EXPECT_NEAR(figure(found, "acac").value, 1 / (1 + std::exp(-2 * (200 / 255.0 - 0.5))), 1e-6);
  EXPECT_NEAR(figure(found, "actc").value, 1 - figure(found, "acac").value, 1e-6);
  // No change, one of two pixels, one of two.
  EXPECT_DOUBLE_EQ(figure(found, "ald0").value, 1.0 / 3);
  EXPECT_NEAR(figure(found, "ald2").value, (0 + 100 / std::sqrt(20000.0) + 1) / 3, 1e-12);
  EXPECT_LE(figure(found, "ald2").interval->low, figure(found, "ald2").value);
  EXPECT_GE(figure(found, "ald2").interval->high, figure(found, "ald2").value);
}

TEST(PairsTest, EveryTestHasItsValues) {
  auto network = half_network();
  DataView originals(by_hand({100, 100, 50, 100}, {0, 0}));
  DataView tests(by_hand({200, 100, 60, 100}, {0, 0}));
  auto pairs = paired_tests(tests, originals);
  QualityRequest request;
  request.metrics = "mr,ald0";
  EXPECT_TRUE(measure_quality(*network, *pairs, request).each.empty());
  request.each = true;
  Quality found = measure_quality(*network, *pairs, request);
  // The second is not misclassified, so that there is no change to speak of.
  EXPECT_EQ(values_csv(found), "test,original,label,verdict,mr,ald0\n0,0,0,1,1,0.5\n1,1,0,0,0,\n");
}

TEST(PairsTest, MustFitTogether) {
  DataView three(by_hand({0, 0, 0, 0, 0, 0}, {0, 0, 0})), two(by_hand({0, 0, 0, 0}, {0, 0}));
  DataView unknown(by_hand({0, 0, 0, 0}, {-1, -1}));
  EXPECT_THROW(paired_tests(three, two), Error);
  EXPECT_THROW(paired_tests(unknown, unknown), Error);
  EXPECT_EQ(paired_tests(two, unknown)->fetch({1}).labels.item<std::int64_t>(), 0);
}

TEST(PairsTest, NothingMisclassifiedIsNoNumber) {
  auto network = half_network();
  DataView same(by_hand({0, 0, 0, 0}, {0, 0}));
  Quality found = measure_quality(*network, *paired_tests(same, same), {});
  EXPECT_EQ(figure(found, "mr").value, 0);
  EXPECT_TRUE(std::isnan(figure(found, "acac").value));
  EXPECT_FALSE(figure(found, "acac").interval);
  // JSON has no such number.
  EXPECT_NE(json_text(as_json(found)).find("\"value\":null"), std::string::npos);
}

// One original says nothing of how others would do.
TEST(PairsTest, NoIntervalFromOneOriginal) {
  auto network = half_network();
  DataView originals(by_hand({50, 50}, {0})), tests(by_hand({200, 50}, {0}));
  Quality found = measure_quality(*network, *paired_tests(tests, originals), {});
  EXPECT_DOUBLE_EQ(figure(found, "ald0").value, 0.5);
  EXPECT_FALSE(figure(found, "ald0").interval);
}

TEST(QualityFigures, HaveTheNamesThatAreAnnounced) {
  auto network = half_network();
  DataView same(by_hand({0, 0, 255, 255}, {0, 0}));
  for (const char* metrics : {"", "mr,ric:quality=75,ric:quality=50,rgb"}) {
    QualityRequest request;
    request.metrics = metrics;
    EXPECT_EQ(names_of(figures_of(measure_quality(*network, *paired_tests(same, same), request))),
              quality_figure_names(metrics));
  }
  EXPECT_EQ(quality_figure_names("ric:quality=75,ric:quality=50").back(), "ric:quality=50");
}

class CampaignQuality : public ::testing::Test {
 protected:
  void SetUp() override {
    network_ = testing::small_network();
    Dataset data = load_data("digits:test[0:24]");
    data.labels = predict(*network_, data.images).labels;
    Tracer tracer(*network_, network_->select_taps("default"), NeuronUnit::channel);
    CampaignSettings settings;
    settings.guide = "random";
    settings.seeds = data.size();
    settings.energy = 8;
    settings.batch = 4;
    settings.seed = 1;
    Budget budget;
    budget.iterations = 32;
    Campaign(folder_ / "run", settings, {tracer, data, nullptr, "", nullptr}).run(budget, {});
  }

  std::unique_ptr<Network> network_;
  TemporaryFolder folder_;
};

TEST_F(CampaignQuality, CountsWhatTheCampaignCounted) {
  CampaignReader reader(folder_ / "run");
  auto tests = campaign_tests(reader);
  CampaignCounters counters = reader.counters();
  SeedFigures seeds = reader.seed_figures();
  ASSERT_GT(counters.faults, 0);
  Quality found = measure_quality(*network_, *tests, {});
  EXPECT_EQ(found.tests, counters.distinct_faults);
  EXPECT_EQ(found.misclassified, counters.distinct_faults);
  EXPECT_TRUE(figure(found, "mr").counted);
  EXPECT_DOUBLE_EQ(figure(found, "mr").value,
                   static_cast<double>(counters.faults) / static_cast<double>(counters.valid));
  EXPECT_EQ(figure(found, "mr").n, counters.valid);
  EXPECT_DOUBLE_EQ(figure(found, "asr").value, seeds.share());
  EXPECT_EQ(figure(found, "acac").n, counters.distinct_faults);
  // The campaign recorded the same confidences.
  double sum = 0;
  FaultFilter distinct;
  distinct.distinct_only = true;
  for (const FaultRecord& fault : reader.faults(distinct)) sum += fault.confidence;
  EXPECT_NEAR(figure(found, "acac").value, sum / static_cast<double>(counters.distinct_faults), 1e-5);
}

TEST_F(CampaignQuality, OfAnotherModelIsOfTheStoredTests) {
  CampaignReader reader(folder_ / "run");
  auto tests = campaign_tests(reader);
  auto other = testing::linear_network({1, 28, 28}, at::zeros({784, 10}), at::arange(10));
  Quality found = measure_quality(*other, *tests, {});
  EXPECT_FALSE(figure(found, "mr").counted);
  EXPECT_EQ(figure(found, "mr").n, tests->size());
}

TEST_F(CampaignQuality, SameForAnyNumberOfWorkersAndDrawnBySeed) {
  CampaignReader reader(folder_ / "run");
  auto tests = campaign_tests(reader);
  QualityRequest request;
  request.most = 5;
  set_workers(1);
  std::string one = json_text(as_json(measure_quality(*network_, *tests, request)));
  set_workers(3);
  EXPECT_EQ(json_text(as_json(measure_quality(*network_, *tests, request))), one);
  Quality found = measure_quality(*network_, *tests, request);
  EXPECT_EQ(found.looked_at, 5);
  EXPECT_GT(found.tests, 5);
  request.seed = 1;
  EXPECT_NE(json_text(as_json(measure_quality(*network_, *tests, request))), one);
}

}  // namespace
}  // namespace galvani
