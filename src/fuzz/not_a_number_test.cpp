// Mutants, seeds and traces whose numbers are not finite.
#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/testing.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/fuzz/guide.h"
#include "galvani/fuzz/reader.h"
#include "galvani/fuzz/summary.h"

namespace galvani {
namespace {

// Pixels above 251 overflow, and with them the scores. Of the taps only the scores themselves, for means over space
// overflow sooner.
constexpr const char* kOverflow = "0..3.45e38";

class NotANumberTest : public ::testing::Test {
 protected:
  void run(const std::string& name, const std::string& guide, std::int64_t iterations = 24) {
    CampaignSettings settings = testing::small_settings(guide);
    settings.generator = "mutate";
    auto profile = learn_profile(*subject_.tracer, guide_criteria(Spec::parse(guide)), subject_.data, 0, 0);
    Campaign campaign(folder_ / name, settings, {*subject_.tracer, subject_.data, profile, "", nullptr});
    Budget budget;
    budget.iterations = iterations;
    campaign.run(budget, {});
  }

  testing::Subject subject_{64, 4, kOverflow, "fc1"};
  TemporaryFolder folder_;
};

TEST_F(NotANumberTest, AMutantWithoutAVerdictIsAFaultOfItsOwnKind) {
  run("a", "random");
  CampaignReader reader(folder_ / "a");
  CampaignCounters c = reader.counters();
  FaultFilter filter;
  filter.predicted = kNotANumber;
  std::vector<FaultRecord> faults = reader.faults(filter);
  ASSERT_GT(faults.size(), 5U);
  ASSERT_LT(static_cast<std::int64_t>(faults.size()), c.valid) << "some mutants should have scores";
  EXPECT_EQ(c.kept, c.valid - static_cast<std::int64_t>(faults.size())) << "random keeps everything else";
  EXPECT_EQ(reader.class_name(kNotANumber), "not a number");
  Request alone;
  alone.alone = true;
  for (const FaultRecord& fault : faults) {
    EXPECT_EQ(fault.predicted, kNotANumber);
    EXPECT_EQ(fault.confidence, 0);
    EXPECT_FALSE(fault.kept());
    std::string end = "-" + std::to_string(fault.label) + "-nan.png";
    EXPECT_EQ(fault.file.substr(fault.file.size() - end.size()), end);
    at::Tensor scores = subject_.network->run(reader.image(fault).unsqueeze(0), alone).logits;
    EXPECT_EQ(verdicts(scores).item<std::int64_t>(), kNotANumber) << fault.file;
  }
  std::int64_t counted = 0;
  for (const ConfusionRecord& cell : reader.confusion()) counted += cell.predicted == kNotANumber ? cell.faults : 0;
  EXPECT_EQ(counted, static_cast<std::int64_t>(faults.size()));
  CampaignSummary summary = summarise(reader);
  EXPECT_EQ(summary.not_a_number, counted);
  EXPECT_LE(summary.predicted, 10) << "it is no class";
  EXPECT_TRUE(Gate("not-a-number>0").met(figures_of(summary)));
  std::vector<WrongSeedRecord> wrong = reader.wrong_seeds();
  auto unknown = std::count_if(wrong.begin(), wrong.end(), [](auto& seed) { return seed.predicted == kNotANumber; });
  EXPECT_GT(unknown, 0);
}

TEST_F(NotANumberTest, EveryGuideGoesOnAndItsCoverageIsANumber) {
  for (const std::string& name : guides().names()) {
    run(name, testing::quick_guide(name), 12);
    for (const TimelinePoint& point : CampaignReader(folder_ / name).timeline()) {
      EXPECT_TRUE(std::isfinite(point.covered)) << name;
      EXPECT_TRUE(std::isfinite(point.coverable)) << name;
    }
    EXPECT_GT(summarise(CampaignReader(folder_ / name)).not_a_number, 0) << name;
  }
}

TEST_F(NotANumberTest, ThreadsAndSessionsChangeNothing) {
  set_workers(1);
  run("once", "kmnc");
  set_workers(3);
  run("twice", "kmnc", 8);
  run("twice", "kmnc");
  EXPECT_EQ(testing::dump(folder_ / "twice"), testing::dump(folder_ / "once"));
}

TEST_F(NotANumberTest, AGuideSeesFiniteRowsOnly) {
  Corpus corpus(nullptr, 1 << 20);
  testing::Subject finite;
  corpus.add_seed(0, 0, finite.data.images[0]);
  for (const std::string& name : guides().names()) {
    Spec spec = Spec::parse(testing::quick_guide(name));
    auto profile = learn_profile(*finite.tracer, guide_criteria(spec), finite.data, 0, 0);
    GuideContext context{*finite.tracer, profile, finite.data, {}, 0, "mutate"};
    std::unique_ptr<Guide> guide = make_guide(spec, context);
    std::unique_ptr<Guide> sheltered = make_guide(spec, context);
    GuideNeeds needs = guide->needs();
    finite.tracer->need(needs.more);
    auto judged = [&](const at::Tensor& images) {
      Judged result{images, {}, {}, finite.tracer->trace(images), {}, {}, {}, {}, corpus};
      result.logits = result.traces.logits;
      result.predicted = result.traces.predicted;
      auto rows = static_cast<std::size_t>(images.size(0));
      result.labels.assign(rows, 0);
      result.parents.assign(rows, 1);
      result.seeds.assign(rows, 1);
      result.iterations.assign(rows, 1);
      if (!needs.traces) result.traces = Traces();
      return result;
    };
    // Row 2 has no verdict; row 5 has one, but a neuron that overflows.
    Judged hurt = judged(finite.data.images.narrow(0, 0, 12));
    hurt.predicted = hurt.predicted.clone();
    hurt.predicted[2] = kNotANumber;
    if (needs.traces) {
      hurt.traces.predicted = hurt.predicted;
      hurt.traces.values[5][3] = std::numeric_limits<float>::infinity();
      mark_usable(hurt.traces);
    }
    std::vector<std::int64_t> good = {0, 1, 3, 4, 6, 7, 8, 9, 10, 11};
    if (!needs.traces) good.insert(good.begin() + 4, 5);
    std::vector<Decision> decisions = guide->decide(hurt);
    std::vector<Decision> expected =
        sheltered->decide(judged(finite.data.images.index_select(0, at::tensor(good, at::kLong))));
    for (std::size_t i = 0; i < good.size(); ++i) {
      EXPECT_EQ(decisions[static_cast<std::size_t>(good[i])].keep, expected[i].keep) << name << " " << i;
      EXPECT_EQ(decisions[static_cast<std::size_t>(good[i])].gain, expected[i].gain) << name << " " << i;
    }
    EXPECT_FALSE(decisions[2].keep) << name;
    if (needs.traces) {
      EXPECT_FALSE(decisions[5].keep) << name;
    }
    EXPECT_EQ(guide->covered().covered, sheltered->covered().covered) << name;
  }
}

}  // namespace
}  // namespace galvani
