#include "galvani/fuzz/guide.h"

#include <gtest/gtest.h>

#include "fuzz/testing.h"

namespace galvani {
namespace {

class GuideTest : public ::testing::Test {
 protected:
  // All inputs are seeds, too; what is judged counts as made of one of the first.
  GuideTest() : corpus_(nullptr, 1 << 20) {
    for (std::int64_t i = 0; i < subject_.data.size(); ++i)
      corpus_.add_seed(subject_.data.labels[i].item<std::int64_t>(), 0, subject_.data.images[i]);
  }

  Judged judged(std::int64_t first, std::int64_t count) {
    at::Tensor images = subject_.data.images.narrow(0, first, count);
    Judged result{images, {}, {}, subject_.tracer->trace(images), {}, {}, {}, {}, corpus_};
    result.logits = result.traces.logits;
    result.predicted = result.traces.predicted;
    for (std::int64_t i = first; i < first + count; ++i) {
      std::int64_t parent = i % 7 + 1;
      result.labels.push_back(corpus_.at(parent).label);
      result.parents.push_back(parent);
      result.seeds.push_back(parent);
      result.iterations.push_back(i);
    }
    return result;
  }
  std::unique_ptr<Guide> make(const std::string& spec) {
    auto profile = learn_profile(*subject_.tracer, guide_criteria(Spec::parse(spec)), subject_.data, 0, 0);
    auto guide = make_guide(Spec::parse(spec), {*subject_.tracer, profile, subject_.data, {}, 0, "mutate"});
    subject_.tracer->need(guide->needs().more);
    return guide;
  }

  testing::Subject subject_;
  Corpus corpus_;
};

TEST_F(GuideTest, ACriterionKeepsWhatGains) {
  auto guide = make("kmnc:k=10");
  EXPECT_EQ(guide->spec(), "kmnc:k=10");
  EXPECT_TRUE(guide->needs().traces);
  auto criterion = make_criterion(Spec::parse("kmnc:k=10"), {subject_.tracer->layout(), subject_.profile});
  guide->absorb(judged(0, 5));
  criterion->add(judged(0, 5).traces);
  std::vector<double> gains = criterion->add(judged(3, 30).traces);
  std::vector<Decision> decisions = guide->decide(judged(3, 30));
  ASSERT_EQ(decisions.size(), 30U);
  int kept = 0;
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(decisions[i].gain, gains[i]);
    EXPECT_EQ(decisions[i].keep, gains[i] > 0);
    kept += decisions[i].keep ? 1 : 0;
  }
  EXPECT_FALSE(decisions[0].keep) << "the third seed covers nothing new";
  EXPECT_GT(kept, 0);
  EXPECT_EQ(guide->covered().covered, criterion->covered().covered);
}

TEST_F(GuideTest, EveryGuideDecidesTheSameInOneCallOrSeveralAndComesBackFromItsState) {
  for (const std::string& name : guides().names()) {
    std::string spec = testing::quick_guide(name);
    auto whole = make(spec);
    auto pieces = make(spec);
    whole->absorb(judged(0, 16));
    pieces->absorb(judged(0, 16));
    std::vector<Decision> expected = whole->decide(judged(16, 32));
    std::vector<Decision> found = pieces->decide(judged(16, 16));
    ArchiveWriter out;
    pieces->save(out);
    auto restored = make(spec);
    ArchiveReader in(out.bytes(), "state");
    restored->load(in);
    in.expect_end();
    for (const Decision& decision : restored->decide(judged(32, 16))) found.push_back(decision);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].keep, expected[i].keep) << spec << " " << i;
      EXPECT_EQ(found[i].gain, expected[i].gain) << spec << " " << i;
    }
    restored->reset();
    EXPECT_EQ(restored->covered().covered, 0) << spec;
    ArchiveReader other(out.bytes(), "state");
    const char* another = spec == "random" ? "nc" : "random";
    EXPECT_NE(testing::error_of([&] { make(another)->load(other); }), "") << spec;
  }
}

TEST_F(GuideTest, MergingGivesWhatBothHaveCovered) {
  for (const std::string spec : {"kmnc:k=20", "kmnc", "deephunter:criterion=kmnc:k=50"}) {
    auto whole = make(spec);
    auto one = make(spec);
    auto other = make(spec);
    whole->absorb(judged(0, 40));
    one->absorb(judged(0, 20));
    other->absorb(judged(20, 20));
    EXPECT_LT(one->covered().covered, whole->covered().covered) << spec;
    one->merge(*other);
    EXPECT_EQ(one->covered().covered, whole->covered().covered) << spec;
    EXPECT_NE(testing::error_of([&] { one->merge(*make("nlc")); }), "") << spec;
  }
}

TEST_F(GuideTest, RandomKeepsAllAndNeedsNothing) {
  auto guide = make("random");
  EXPECT_FALSE(guide->needs().traces);
  EXPECT_FALSE(guide->full());
  for (const Decision& decision : guide->decide(judged(0, 4))) EXPECT_TRUE(decision.keep);
}

TEST_F(GuideTest, FullMeansEverythingIsCovered) {
  auto guide = make("tknc:k=10");
  EXPECT_FALSE(guide->full());
  guide->absorb(judged(0, 60));
  EXPECT_EQ(guide->full(), guide->covered().covered == guide->covered().total);
  auto one = make("nc:threshold=-1");
  one->absorb(judged(0, 2));
  EXPECT_TRUE(one->full()) << "every neuron is above a threshold below the lowest value";
}

TEST_F(GuideTest, DeepHunterBringsItsMutators) {
  Spec spec = Spec::parse("deephunter:group=n,criterion=nbc");
  EXPECT_EQ(guide_defaults(spec).generator, "mutate:set=deephunter:group=n");
  EXPECT_EQ(guide_criteria(spec).at(0).name, "nbc");
  EXPECT_EQ(guide_defaults(Spec::parse("kmnc")).generator, "mutate");
  EXPECT_NE(testing::error_of([&] { make("deephunter:group=x"); }), "");
}

}  // namespace
}  // namespace galvani
