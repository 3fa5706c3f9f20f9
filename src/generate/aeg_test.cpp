#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/dataset.h"
#include "galvani/generate/examples.h"
#include "galvani/generate/generator.h"
#include "galvani/trace/deep_features.h"
#include "generate/testing.h"

namespace galvani {
namespace {

class AegTest : public ::testing::Test {
 protected:
  AegTest() : seeds_(load_data("digits:test[0:5]").images) {
    testing::save_example_maker(folder_ / "aeg.onnx");
    reference_ = testing::random_lenet(4);
    reference_->save(folder_ / "reference.onnx");
  }

  std::unique_ptr<Generator> make(const std::string& more) const {
    GeneratorContext context;
    context.seeds = seeds_;
    return make_generator(Spec::parse("aeg:model=" + (folder_ / "aeg.onnx").string() + more), context);
  }
  std::string with_reference() const { return ",features=" + (folder_ / "reference.onnx").string(); }
  std::vector<PickedParent> parents() const {
    std::vector<PickedParent> result;
    for (std::int64_t i = 0; i < seeds_.size(0); ++i) result.push_back({seeds_[i], seeds_[i], "", 0, i + 4, Rng(7)});
    return result;
  }
  std::string refused(const std::string& spec) const {
    GeneratorContext context;
    context.seeds = seeds_;
    try {
      make_generator(Spec::parse(spec), context);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  at::Tensor seeds_;
  std::unique_ptr<Network> reference_;
};

TEST_F(AegTest, ExamplesOfOneParentDiffer) {
  auto generator = make(",features=none,top=0");
  Candidates made = generator->begin(parents(), {6, false})->next(1000);
  ASSERT_EQ(made.each.size(), 30U);
  std::set<std::string> distinct;
  for (std::int64_t i = 0; i < 6; ++i) {
    at::Tensor image = made.inputs[i].contiguous();
    distinct.insert(sha256({static_cast<const char*>(image.data_ptr()), image.nbytes()}));
  }
  EXPECT_EQ(distinct.size(), 6U);
  // Everything that is no copy counts where nothing judges.
  for (const Candidate& candidate : made.each) EXPECT_TRUE(candidate.valid);
  EXPECT_EQ(generator->passes(), 30);
}

TEST_F(AegTest, TheDomainOfTheSeedDecidesTheWay) {
  TranslatorRequest request{{1, 28, 28, 2}, {"p.", "q."}, Rng(2)};
  Network::Options how;
  how.any_output = true;
  how.execution = {16, false};
  auto network =
      Network::from_onnx(translators().create(Spec::parse("resnet:width=4,blocks=1,dropout=0"), request), "aeg", how);
  ModelCard card = network->card();
  card.preprocess.low = -1;
  card.first_domain = {"three"};
  card.second_domain = {"eight"};
  network->set_card(card);
  network->save(folder_ / "pair.onnx");
  std::vector<at::Tensor> values = network->apply(seeds_);
  GeneratorContext context;
  context.seeds = seeds_;
  context.class_names = {"eight", "three"};
  auto generator =
      make_generator(Spec::parse("aeg:features=none,top=0,model=" + (folder_ / "pair.onnx").string()), context);
  std::vector<PickedParent> all = parents();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].label = static_cast<std::int64_t>(i % 2);
    all[i].input = seeds_[static_cast<std::int64_t>(i)];
  }
  Candidates made = generator->begin(all, {1, false})->next(100);
  ASSERT_EQ(made.each.size(), 5U);
  for (std::int64_t i = 0; i < 5; ++i) {
    at::Tensor wanted = ((values[i % 2 == 1 ? 0 : 2][i] + 1) * 127.5).round().clamp(0, 255);
    EXPECT_LE((made.inputs[i].to(at::kFloat) - wanted).abs().max().item<float>(), 1) << i;
  }
}

TEST_F(AegTest, TheMostSimilarOfEveryParentAreTaken) {
  auto generator = make(with_reference() + ",similarity=-1,top=2");
  std::unique_ptr<Proposal> proposal = generator->begin(parents(), {6, false});
  Candidates made = proposal->next(1000);
  FeatureNeed need = feature_of(*reference_, "penultimate");
  at::Tensor own = deep_features(*reference_, need, made.inputs);
  at::Tensor theirs = deep_features(*reference_, need, seeds_).repeat_interleave(6, 0);
  at::Tensor cosine = cosines(own, theirs);
  for (std::size_t parent = 0; parent < 5; ++parent) {
    std::vector<float> taken, left;
    for (std::size_t i = parent * 6; i < parent * 6 + 6; ++i) {
      auto value = cosine[static_cast<std::int64_t>(i)].item<float>();
      (made.each[i].valid ? taken : left).push_back(value);
      EXPECT_NEAR(proposal->figures(i).at(1).second, static_cast<double>(value), 1e-5);
    }
    ASSERT_EQ(taken.size(), 2U);
    EXPECT_GE(*std::min_element(taken.begin(), taken.end()), *std::max_element(left.begin(), left.end()) - 1e-6);
  }
  // 30 examples, 5 parents and 30 examples seen by the reference.
  EXPECT_EQ(generator->passes(), 65);
}

TEST_F(AegTest, WhatIsNotSimilarEnoughIsLeftOut) {
  Candidates made = make(with_reference() + ",similarity=1")->begin(parents(), {6, false})->next(1000);
  for (const Candidate& candidate : made.each) EXPECT_FALSE(candidate.valid);
}

TEST_F(AegTest, SimilarityMayBeHeldAgainstTheSeed) {
  std::vector<PickedParent> moved = parents();
  moved[0].seed = 255 - seeds_[0];
  FeatureNeed need = feature_of(*reference_, "penultimate");
  auto features = [&](const at::Tensor& image) { return deep_features(*reference_, need, image.unsqueeze(0)); };
  for (const auto& [against, origin] : {std::pair("parent", moved[0].input), std::pair("seed", moved[0].seed)}) {
    auto generator = make(with_reference() + ",against=" + against);
    std::unique_ptr<Proposal> proposal = generator->begin(moved, {2, false});
    Candidates made = proposal->next(1000);
    auto wanted = cosines(features(made.inputs[0]), features(origin)).item<double>();
    EXPECT_NEAR(proposal->figures(0).at(1).second, wanted, 1e-5) << against;
  }
}

TEST_F(AegTest, StopsAtWhatIsKept) {
  auto generator = make(",features=none");
  std::unique_ptr<Proposal> proposal = generator->begin(parents(), {3, true});
  Candidates first = proposal->next(100);
  ASSERT_EQ(first.each.size(), 5U);
  Outcome outcome;
  outcome.rows = {1, 2};
  outcome.kept = {1, 0};
  proposal->learn(outcome);
  std::vector<std::size_t> order;
  for (int call = 0; call < 4; ++call) {
    for (const Candidate& candidate : proposal->next(2).each) order.push_back(candidate.parent);
    proposal->learn({});
  }
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 2, 3, 4, 0, 2, 3, 4}));
  EXPECT_TRUE(proposal->next(100).each.empty());
}

TEST_F(AegTest, SaysWhatIsMissing) {
  EXPECT_NE(refused("aeg").find("train-generator"), std::string::npos);
  EXPECT_NE(refused("aeg:model=" + (folder_ / "aeg.onnx").string()).find("--reference"), std::string::npos);
  std::string classifier = (folder_ / "reference.onnx").string();
  EXPECT_NE(refused("aeg:features=none,model=" + classifier).find(classifier), std::string::npos);
  EXPECT_NE(refused("mix").find("mix:first="), std::string::npos);
  EXPECT_NE(refused("mix:first=noise,second=(noise:eps=0.5)").find("'noise'"), std::string::npos);
}

TEST_F(AegTest, MixedWithMutation) {
  GeneratorContext context;
  context.seeds = seeds_;
  std::string aeg = "aeg:model=" + (folder_ / "aeg.onnx").string() + ",features=none";
  auto generator = make_generator(Spec::parse("mix:first=(" + aeg + "),second=mutate,share=0.25"), context);
  std::unique_ptr<Proposal> proposal = generator->begin(parents(), {8, false});
  std::vector<std::int64_t> by_first(5), by_second(5);
  std::set<std::pair<std::size_t, std::int64_t>> slots;
  while (true) {
    Candidates part = proposal->next(7);
    if (part.each.empty()) break;
    for (std::size_t i = 0; i < part.each.size(); ++i) {
      const Candidate& candidate = part.each[i];
      (candidate.kind == 0 ? by_first : by_second)[candidate.parent] += 1;
      EXPECT_TRUE(slots.insert({candidate.parent, candidate.slot}).second);
      if (candidate.valid && candidate.kind > 0) {
        std::string step = proposal->provenance(i);
        at::Tensor parent = seeds_[static_cast<std::int64_t>(candidate.parent)];
        EXPECT_TRUE(at::equal(generator->make(step, parent, parent), part.inputs[static_cast<std::int64_t>(i)]));
      }
    }
    proposal->learn({});
  }
  EXPECT_EQ(by_first, (std::vector<std::int64_t>{2, 2, 2, 2, 2}));
  EXPECT_EQ(by_second, (std::vector<std::int64_t>{6, 6, 6, 6, 6}));
  EXPECT_EQ(generator->passes(), 10);
  // A lineage remembers what the one that made a step has to know.
  std::string memo = generator->inherit(generator->inherit("", "rotation:angle=5"), "aeg:draw=3");
  at::Tensor turned = generator->make("rotation:angle=5", seeds_[0], seeds_[0]);
  EXPECT_TRUE(at::equal(generator->reference(seeds_[0], memo), turned));
}

}  // namespace
}  // namespace galvani
