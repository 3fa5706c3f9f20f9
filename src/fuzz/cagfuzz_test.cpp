#include <gtest/gtest.h>

#include "fuzz/testing_campaign.h"
#include "galvani/fuzz/guide.h"
#include "galvani/fuzz/method.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/translator.h"

namespace galvani {
namespace {

class CagfuzzTest : public testing::CampaignTest {
 protected:
  CagfuzzTest() {
    TranslatorRequest request{{1, 28, 28, 2}, {"p.", "q."}, Rng(2)};
    Network::Options options;
    options.any_output = true;
    options.execution = {16, false};
    Network::from_onnx(translators().create(Spec::parse("resnet:width=4,blocks=1"), request), "aeg", options)
        ->save(folder_ / "aeg.onnx");
    Rng rng(9);
    Network::from_onnx(architectures().create(Spec::parse("lenet5"), {1, 28, 28, 10}, rng), "r", {})
        ->save(folder_ / "reference.onnx");
  }
  // The method as it is, on few seeds; random weights make examples that are nothing like their parents.
  CampaignSettings settings() const {
    CampaignSettings result = find_method("cagfuzz").settings;
    result.generator = "aeg:model=" + (folder_ / "aeg.onnx").string() +
                       ",features=" + (folder_ / "reference.onnx").string() + ",similarity=-1";
    result.seeds = 20;
    result.batch = 4;
    result.seed = 3;
    return result;
  }
  static constexpr const char* kCount = "nc:threshold=0.5";
};

TEST_F(CagfuzzTest, IsAsThePaperHasIt) {
  CampaignSettings s = completed(find_method("cagfuzz").settings);
  EXPECT_EQ(Spec::parse(s.generator).name, "aeg");
  EXPECT_EQ(Spec::parse(s.scheduler).name, "newest");
  EXPECT_EQ(s.guide, "cagfuzz");
  EXPECT_GE(s.energy, 5);
}

TEST_F(CagfuzzTest, KeepsWhatCoversMoreThanItsParent) {
  auto guide = make_guide(Spec::parse(std::string("cagfuzz:criterion=(") + kCount + ")"),
                          {*subject_.tracer, nullptr, subject_.data, {}, 0, "aeg"});
  auto count = [&](const at::Tensor& image) {
    auto fresh = make_criterion(Spec::parse(kCount), {subject_.tracer->layout(), nullptr});
    return fresh->add(subject_.tracer->trace(image.unsqueeze(0)))[0];
  };
  Corpus corpus(nullptr, 1 << 20);
  for (std::int64_t i = 0; i < 3; ++i) corpus.add_seed(0, 0, subject_.data.images[i]);
  at::Tensor images = subject_.data.images.narrow(0, 10, 30);
  Judged judged{images, {}, {}, subject_.tracer->trace(images), {}, {}, {}, {}, corpus};
  judged.logits = judged.traces.logits;
  judged.predicted = judged.traces.predicted;
  for (std::int64_t i = 0; i < 30; ++i) {
    judged.labels.push_back(0);
    judged.parents.push_back(i % 3 + 1);
    judged.seeds.push_back(i % 3 + 1);
    judged.iterations.push_back(1);
  }
  std::vector<Decision> decisions = guide->decide(judged);
  int kept = 0;
  for (std::int64_t i = 0; i < 30; ++i) {
    double gain = count(images[i]) - count(subject_.data.images[i % 3]);
    EXPECT_EQ(decisions[static_cast<std::size_t>(i)].gain, gain);
    EXPECT_EQ(decisions[static_cast<std::size_t>(i)].keep, gain > 0);
    kept += gain > 0 ? 1 : 0;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 30);
  EXPECT_EQ(guide->passes(), 3);
  EXPECT_FALSE(guide->full());
}

TEST_F(CagfuzzTest, AllTogetherIsTheCriterionsGuide) {
  auto total = make_guide(Spec::parse(std::string("cagfuzz:gain=total,criterion=(") + kCount + ")"),
                          {*subject_.tracer, nullptr, subject_.data, {}, 0, "aeg"});
  auto plain = make_guide(Spec::parse(kCount), {*subject_.tracer, nullptr, subject_.data, {}, 0, "aeg"});
  Corpus corpus(nullptr, 1 << 20);
  at::Tensor images = subject_.data.images;
  Judged judged{images, {}, {}, subject_.tracer->trace(images), {}, {}, {}, {}, corpus};
  judged.logits = judged.traces.logits;
  judged.predicted = judged.traces.predicted;
  judged.labels.assign(static_cast<std::size_t>(images.size(0)), 0);
  std::vector<Decision> a = total->decide(judged), b = plain->decide(judged);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].keep, b[i].keep);
    EXPECT_EQ(a[i].gain, b[i].gain);
  }
  EXPECT_EQ(total->passes(), 0);
}

TEST_F(CagfuzzTest, ACriterionWithoutFeaturesIsRefused) {
  EXPECT_NE(
      testing::error_of([&] {
        make_guide(Spec::parse("cagfuzz:criterion=nlc"), {*subject_.tracer, nullptr, subject_.data, {}, 0, "aeg"});
      }).find("gain=total"),
      std::string::npos);
}

TEST_F(CagfuzzTest, TheSameSeedGivesTheSameCampaignKilledOrNot) {
  run("whole", 5, settings());
  CampaignReader reader(folder_ / "whole");
  ASSERT_GT(reader.counters().kept, 0);
  ASSERT_GT(reader.counters().faults, 0);
  EXPECT_GT(reader.counters().valid, 0);
  // Five at most of ten.
  EXPECT_LE(reader.counters().valid, reader.counters().mutants / 2);
  run("again", 5, settings());
  EXPECT_EQ(dump("whole"), dump("again"));
  run_and_kill("killed", 3, settings());
  run("killed", 5, settings());
  EXPECT_EQ(dump("whole"), dump("killed"));
}

TEST_F(CagfuzzTest, AnotherNetworkOfExamplesIsAnotherCampaign) {
  run("whole", 1, settings());
  auto other = Network::load(folder_ / "reference.onnx");
  other->set_parameter("fc1.bias", other->parameter("fc1.bias") + 1);
  other->save(folder_ / "reference.onnx");
  EXPECT_NE(testing::error_of([&] { run("whole", 2, settings()); }).find("a file of the generator"), std::string::npos);
}

TEST_F(CagfuzzTest, AnyGuideMayUseExamplesAndMutationMayBeMixedIn) {
  for (const char* guide : {"kmnc", "random"}) {
    CampaignSettings mixed = settings();
    mixed.guide = guide;
    mixed.scheduler = "sweep";
    mixed.generator = "mix:first=(" + mixed.generator + "),second=mutate";
    std::string name = std::string("mixed-") + guide;
    run(name, 2, mixed);
    CampaignReader reader(folder_ / name);
    std::int64_t examples = 0, others = 0;
    for (const YieldRecord& yield : reader.kinds()) (yield.name == "aeg" ? examples : others) += yield.mutants;
    EXPECT_GT(examples, 0) << guide;
    EXPECT_GT(others, 0) << guide;
  }
}

}  // namespace
}  // namespace galvani
