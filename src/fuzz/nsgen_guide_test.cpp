#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fuzz/testing_campaign.h"
#include "galvani/base/json.h"
#include "galvani/fuzz/calibrate.h"
#include "galvani/fuzz/guide.h"
#include "galvani/fuzz/method.h"
#include "galvani/fuzz/reader.h"

namespace galvani {
namespace {

// The small subject with a word for every neuron.
class NsgenTest : public testing::CampaignTest {
 protected:
  NsgenTest() : corpus_(nullptr, 1 << 20) {
    descriptions_.model = subject_.network->identity();
    for (int tap : subject_.network->select_taps("default")) {
      const Tap& from = subject_.network->taps()[static_cast<std::size_t>(tap)];
      DescribedLayer layer{from.name, {}};
      for (std::int64_t n = 0; n < from.neurons(); ++n) {
        DescribedNeuron neuron;
        neuron.words = fmt::format("thing {} of {}", n, from.name);
        layer.neurons.push_back(neuron);
      }
      descriptions_.layers.push_back(layer);
    }
    save();
    for (std::int64_t i = 0; i < 8; ++i)
      corpus_.add_seed(subject_.data.labels[i].item<std::int64_t>(), 0, subject_.data.images[i]);
  }

  void save() { descriptions_.save(file()); }
  std::filesystem::path file() { return folder_ / "neurons.json"; }
  std::string spec(const std::string& more) { return "nsgen:describe=" + file().string() + ",steps=6," + more; }
  std::unique_ptr<Guide> make(const std::string& guide) {
    return make_guide(Spec::parse(guide),
                      {*subject_.tracer, nullptr, subject_.data, subject_.data.class_names, 0, "mutate"});
  }
  // Other inputs as if they were mutants of the first eight.
  Judged judged(std::int64_t first, std::int64_t count) {
    at::Tensor images = subject_.data.images.narrow(0, first, count);
    Judged result{images, subject_.network->run(images).logits, {}, {}, {}, {}, {}, {}, corpus_};
    result.predicted = verdicts(result.logits);
    for (std::int64_t i = first; i < first + count; ++i) {
      std::int64_t parent = i % 8 + 1;
      result.labels.push_back(corpus_.at(parent).label);
      result.parents.push_back(parent);
      result.seeds.push_back(parent);
      result.iterations.push_back(i);
    }
    return result;
  }
  PathFinder finder() {
    Options options = guides().options(Spec::parse(spec("tau=0.5")));
    return {*subject_.network, descriptions_, PathOptions::from(options), subject_.data.class_names};
  }

  Descriptions descriptions_;
  Corpus corpus_;
};

TEST_F(NsgenTest, KeepsWhatIsLessAlikeThanTheThreshold) {
  Judged mutants = judged(16, 32);
  // Worked out without the guide, one by one.
  PathFinder alone = finder();
  std::vector<double> similar;
  for (std::int64_t i = 0; i < 32; ++i) {
    auto place = static_cast<std::size_t>(i);
    at::Tensor target = at::tensor(mutants.labels).narrow(0, i, 1);
    at::Tensor original = corpus_.image(mutants.parents[place]).unsqueeze(0);
    at::Tensor mutant = mutants.images.narrow(0, i, 1);
    DecisionPath a = alone.find(original, target, subject_.network->run(original).logits)[0];
    DecisionPath b = alone.find(mutant, target, subject_.network->run(mutant).logits)[0];
    similar.push_back(alone.similarity({{&a, &b}})[0]);
  }
  std::vector<double> sorted = similar;
  std::sort(sorted.begin(), sorted.end());
  double tau = (sorted[11] + sorted[12]) / 2;
  auto guide = make(spec(fmt::format("tau={}", tau)));
  guide->absorb(judged(0, 8));
  std::int64_t before = guide->passes();
  std::vector<Decision> decisions = guide->decide(mutants);
  int kept = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(decisions[i].keep, similar[i] < tau) << i;
    EXPECT_NEAR(decisions[i].gain, 1 - similar[i], 1e-6);
    kept += decisions[i].keep ? 1 : 0;
    if (decisions[i].keep) {
      EXPECT_NE(decisions[i].metadata.find("a photo of a"), std::string::npos);
      EXPECT_NO_THROW(Json::parse(decisions[i].metadata));
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_DOUBLE_EQ(guide->covered().covered, kept / 8.0);
  // Eight originals once each, with a pass to see what they are taken for; 32 mutants.
  EXPECT_EQ(guide->passes() - before, 8 * 6 + 8 + 32 * 6);
  before = guide->passes();
  guide->decide(judged(16, 8));
  EXPECT_EQ(guide->passes() - before, 8 * 6);
}

TEST_F(NsgenTest, AblationsAndControlsNeedNoPassesWhereTheyLookAtNoNeurons) {
  for (const char* more : {"tau=0.9,words=label", "tau=0.9,select=all"}) {
    auto guide = make(spec(more));
    guide->absorb(judged(0, 8));
    guide->decide(judged(16, 16));
    EXPECT_EQ(guide->passes(), 8) << more;
  }
  auto sets = make(spec("tau=0.9,text=off"));
  sets->absorb(judged(0, 8));
  for (const Decision& decision : sets->decide(judged(16, 16))) EXPECT_LE(decision.gain, 1);
}

TEST_F(NsgenTest, ACampaignGoneOnWithIsTheSameCampaign) {
  CampaignSettings settings = testing::small_settings(spec("tau=0.9"));
  settings.stop_at_kept = true;
  run("whole", 6, settings);
  run_and_kill("killed", 2, settings, 0);
  run("killed", 6, settings);
  EXPECT_EQ(dump("whole"), dump("killed"));
  CampaignReader reader(folder_ / "whole");
  EXPECT_GT(reader.counters().kept, 0);
  std::int64_t said = 0;
  reader.for_each_input([&](const InputRecord& input) { said += input.metadata.empty() ? 0 : 1; });
  EXPECT_EQ(said, reader.counters().kept);
}

TEST_F(NsgenTest, OtherDescriptionsAreAnotherCampaign) {
  CampaignSettings settings = testing::small_settings(spec("tau=0.9"));
  run("one", 1, settings);
  descriptions_.layers[0].neurons[0].words = "something else";
  save();
  EXPECT_NE(testing::error_of([&] { run("one", 2, settings); }), "");
  descriptions_.model = "another";
  save();
  EXPECT_NE(testing::error_of([&] { run("two", 1, settings); }).find("another model"), std::string::npos);
}

TEST_F(NsgenTest, TheThresholdIsTheLowerQuartileAndIsUsed) {
  PathFinder paths = finder();
  CalibrateOptions options;
  options.share = 0.05;
  Calibrated found = calibrate(paths, *subject_.network, DataView(subject_.data), options);
  EXPECT_EQ(found.rules.size(), 95U);
  EXPECT_EQ(found.record.mutants, 95 * found.record.inputs);
  EXPECT_EQ(found.similarity.size(), static_cast<std::size_t>(found.record.mutants));
  EXPECT_EQ(found.record.tau, found.record.quartiles[0]);
  EXPECT_LE(found.record.below, 0.25);
  // Rules that change nothing leave the reasons as they are.
  auto same = std::find(found.rules.begin(), found.rules.end(), "rotation:angle=0") - found.rules.begin();
  ASSERT_LT(same, 95);
  EXPECT_EQ(found.similarity[static_cast<std::size_t>(same)], 1);
  Calibrated again = calibrate(paths, *subject_.network, DataView(subject_.data), options);
  EXPECT_EQ(again.similarity, found.similarity);
  descriptions_.calibrations = {found.record};
  save();
  auto calibrated = make(spec("tau=0"));
  auto stated = make(spec(fmt::format("tau={}", found.record.tau)));
  Judged mutants = judged(16, 32);
  std::vector<Decision> a = calibrated->decide(mutants);
  std::vector<Decision> b = stated->decide(mutants);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].keep, b[i].keep);
}

TEST(NsgenMethod, StopsAtTheFirstThatIsKept) {
  const Method& method = find_method("nsgen");
  EXPECT_TRUE(method.settings.stop_at_kept);
  EXPECT_EQ(method.settings.guide, "nsgen");
  EXPECT_EQ(method.settings.scheduler, "decay");
}

}  // namespace
}  // namespace galvani
