#include "galvani/generate/generator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/data/dataset.h"
#include "galvani/generate/attack.h"
#include "galvani/mutate/engine.h"
#include "generate/testing.h"

namespace galvani {
namespace {

template <class Action>
std::string refused(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

class GeneratorTest : public ::testing::Test {
 protected:
  GeneratorTest() : seeds_(load_data("digits:test[0:6]").images) {
    network_ = testing::random_lenet();
    testing::save_relative(*network_, 0.2, folder_ / "other.onnx");
    testing::save_example_maker(folder_ / "aeg.onnx");
    labels_ = network_->run(seeds_).logits.argmax(1);
  }

  std::unique_ptr<Generator> make(const std::string& spec) const {
    GeneratorContext context;
    context.seeds = seeds_;
    context.network = network_.get();
    Spec full = Spec::parse(spec);
    // Without files they have no default form.
    if (full.name == "deepxplore") full.settings.emplace_back("with", (folder_ / "other.onnx").string());
    std::string aeg = "model=" + (folder_ / "aeg.onnx").string() + ",features=none";
    if (spec == "aeg") full = Spec::parse("aeg:" + aeg);
    if (spec == "mix") full = Spec::parse("mix:first=(aeg:" + aeg + "),second=mutate");
    return make_generator(full, context);
  }
  std::vector<PickedParent> parents() const {
    std::vector<PickedParent> result;
    for (std::int64_t i = 0; i < seeds_.size(0); ++i)
      result.push_back({seeds_[i], seeds_[i], "", labels_[i].item<std::int64_t>(), i + 1, Rng(7)});
    return result;
  }

  struct Made {
    std::vector<Candidate> each;
    std::vector<std::string> provenances;
    at::Tensor inputs;
  };
  // All candidates, asked for in portions; nothing is ever kept.
  static Made all(const Generator& generator, const std::vector<PickedParent>& parents, const PickOrder& order,
                  std::int64_t portion) {
    Made made;
    std::vector<at::Tensor> inputs;
    std::unique_ptr<Proposal> proposal = generator.begin(parents, order);
    while (true) {
      Candidates part = proposal->next(portion);
      if (part.each.empty()) break;
      EXPECT_LE(static_cast<std::int64_t>(part.each.size()), portion);
      for (std::size_t i = 0; i < part.each.size(); ++i) {
        made.each.push_back(part.each[i]);
        made.provenances.push_back(part.each[i].valid ? proposal->provenance(i) : "");
      }
      inputs.push_back(part.inputs);
      proposal->learn({});
    }
    made.inputs = at::cat(inputs);
    return made;
  }

  TemporaryFolder folder_;
  at::Tensor seeds_;                  // [6, 1, 28, 28]
  std::unique_ptr<Network> network_;  // random weights
  at::Tensor labels_;                 // its verdicts
};

// Laws that every generator keeps, in its default form.
TEST_F(GeneratorTest, EveryGeneratorIsAFunctionOfItsParentsAlone) {
  ASSERT_GE(generators().entries().size(), 2U);
  for (const std::string& name : generators().names()) {
    auto generator = make(name);
    Made once = all(*generator, parents(), {8, false}, 1000);
    // Changes by rules fill the order; what looks for something may have less to give.
    bool by_rules = once.each.front().repeatable;
    ASSERT_TRUE(by_rules ? once.each.size() == 48U : once.each.size() <= 48U) << name;
    Made portions = all(*generator, parents(), {8, false}, 5);
    int before = workers().size();
    set_workers(before == 1 ? 3 : 1);
    Made other_threads = all(*make(name), parents(), {8, false}, 1000);
    set_workers(before);
    std::int64_t valid = 0;
    std::map<std::size_t, std::int64_t> slots;
    for (const Made* again : {&portions, &other_threads}) {
      ASSERT_EQ(again->each.size(), once.each.size()) << name;
      EXPECT_EQ(again->provenances, once.provenances) << name;
      EXPECT_TRUE(at::equal(again->inputs, once.inputs)) << name;
    }
    for (std::size_t i = 0; i < once.each.size(); ++i) {
      const Candidate& candidate = once.each[i];
      if (by_rules) {
        EXPECT_EQ(candidate.parent, i / 8) << name;
        EXPECT_EQ(candidate.slot, static_cast<std::int64_t>(i % 8)) << name;
      } else {
        // Searches may go on with all parents side by side.
        EXPECT_GE(candidate.slot, slots[candidate.parent]) << name;
        slots[candidate.parent] = candidate.slot + 1;
      }
      valid += candidate.valid ? 1 : 0;
    }
    EXPECT_GT(valid, by_rules ? 24 : 0) << name;
  }
}

TEST_F(GeneratorTest, EveryRepeatableCandidateIsMadeAgainByItsProvenance) {
  for (const std::string& name : generators().names()) {
    auto generator = make(name);
    std::vector<std::string> kinds = generator->kinds();
    Made made = all(*generator, parents(), {8, false}, 1000);
    int looked_at = 0;
    for (std::size_t i = 0; i < made.each.size(); ++i) {
      const Candidate& candidate = made.each[i];
      if (!candidate.valid) continue;
      ++looked_at;
      EXPECT_EQ(kind_of(made.provenances[i]), kinds.at(static_cast<std::size_t>(candidate.kind)));
      if (!candidate.repeatable) continue;
      at::Tensor parent = seeds_[static_cast<std::int64_t>(candidate.parent)];
      at::Tensor own = made.inputs[static_cast<std::int64_t>(i)];
      EXPECT_TRUE(at::equal(generator->make(made.provenances[i], parent, parent), own)) << made.provenances[i];
      std::string memo = generator->inherit("", made.provenances[i]);
      EXPECT_TRUE(generator->valid(generator->reference(parent, memo), own)) << made.provenances[i];
      EXPECT_FALSE(at::equal(own, parent)) << made.provenances[i];
    }
    EXPECT_GT(looked_at, 0) << name;
    EXPECT_NE(refused([&] { generator->make("nothing:of=ours", seeds_[0], seeds_[0]); }), "") << name;
    EXPECT_NE(refused([&] { generator->make(made.provenances[0], seeds_[0].narrow(1, 0, 8), seeds_[0]); }), "");
    EXPECT_EQ(generator->probe(seeds_[0]), make(name)->probe(seeds_[0])) << name;
  }
}

TEST_F(GeneratorTest, StoppingAtWhatIsKeptTakesOneOfEveryParentAtATime) {
  auto generator = make("mutate");
  std::unique_ptr<Proposal> proposal = generator->begin(parents(), {4, true});
  Candidates first = proposal->next(100);
  ASSERT_EQ(first.each.size(), 6U);
  Outcome outcome;
  outcome.rows = {1, 4};
  outcome.kept = {1, 0};
  proposal->learn(outcome);
  std::vector<std::size_t> order;
  for (int round = 1; round < 4; ++round) {
    // In portions, too.
    for (std::int64_t portion : {3, 3}) {
      Candidates part = proposal->next(portion);
      for (const Candidate& candidate : part.each) {
        EXPECT_EQ(candidate.slot, round);
        order.push_back(candidate.parent);
      }
      proposal->learn({});
    }
  }
  EXPECT_TRUE(proposal->next(100).each.empty());
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 2, 3, 4, 5, 0, 2, 3, 4, 5, 0, 2, 3, 4, 5}));
}

TEST_F(GeneratorTest, ALineageHasOneAffineStepAndIsHeldAgainstIt) {
  auto generator = make("mutate");
  EXPECT_EQ(generator->inherit("", "blur:kind=box,size=3"), "");
  std::string memo = generator->inherit("", "rotation:angle=5");
  EXPECT_EQ(memo, "rotation:angle=5");
  EXPECT_EQ(generator->inherit(memo, "blur:kind=box,size=3"), memo);
  at::Tensor turned = generator->make("rotation:angle=5", seeds_[0], seeds_[0]);
  EXPECT_TRUE(at::equal(generator->reference(seeds_[0], memo), turned));
  std::vector<PickedParent> after = {{turned.contiguous(), seeds_[0], memo, 0, 1, Rng(3)}};
  for (const std::string& step : all(*generator, after, {64, false}, 64).provenances) {
    if (step.empty()) continue;
    EXPECT_EQ(generator->inherit("", step), "") << step << " is a second affine step";
  }
  std::vector<std::string> weaker = generator->weaker("rotation:angle=16");
  ASSERT_EQ(weaker.size(), 15U);
  EXPECT_EQ(weaker.front(), "rotation:angle=1");
  EXPECT_EQ(weaker.back(), "rotation:angle=15");
  EXPECT_TRUE(generator->weaker("blur:kind=box,size=3").empty());
}

TEST_F(GeneratorTest, PresetsFillInWhatIsNotGiven) {
  EXPECT_EQ(resolved_generator(Spec::parse("mutate:validity=nlc-code")),
            "mutate:set=nsgen,alpha=0.4,beta=0.8,snr=5,tries=50,exempt=style,validity=nlc-code");
  EXPECT_EQ(resolved_generator(Spec::parse("mutate:validity=nlc-code,alpha=0.1")),
            "mutate:set=nsgen,alpha=0.1,beta=0.8,snr=5,tries=50,exempt=style,validity=nlc-code");
  EXPECT_EQ(short_generator(resolved_generator(Spec::parse("mutate"))), "mutate");
  EXPECT_EQ(short_generator(resolved_generator(Spec::parse("mutate:set=(blur,rotation:w=2)"))),
            "mutate:set=(blur,rotation:w=2)");
}

TEST_F(GeneratorTest, NoiseStaysInItsBallAndFillsIt) {
  auto linf = make("noise:eps=8/255");
  Made made = all(*linf, parents(), {32, false}, 1000);
  at::Tensor change = made.inputs.to(at::kInt) - seeds_.repeat_interleave(32, 0).to(at::kInt);
  EXPECT_EQ(change.abs().max().item<int>(), 8);
  // Away from black and white every one of the 17 steps is as likely.
  at::Tensor inner =
      change.masked_select(seeds_.repeat_interleave(32, 0).ge(8) & seeds_.repeat_interleave(32, 0).le(247));
  ASSERT_GT(inner.numel(), 1000);
  EXPECT_NEAR(inner.to(at::kDouble).mean().item<double>(), 0, 0.5);
  EXPECT_NEAR(inner.to(at::kDouble).var().item<double>(), 24, 2) << "(17² - 1) / 12";

  auto l2 = make("noise:norm=l2,eps=1");
  Made round = all(*l2, parents(), {32, false}, 1000);
  at::Tensor lengths =
      (round.inputs.to(at::kDouble) - seeds_.repeat_interleave(32, 0).to(at::kDouble)).flatten(1).norm(2, {1});
  EXPECT_LE(lengths.max().item<double>(), 255 * (1 + 1e-9));
  EXPECT_GT(lengths.max().item<double>(), 120) << "half of it is clipped at black";

  at::Tensor corners = all(*make("noise:eps=8/255,at=corners"), parents(), {32, false}, 1000).inputs.to(at::kInt);
  at::Tensor steps = corners - seeds_.repeat_interleave(32, 0).to(at::kInt);
  at::Tensor outer =
      steps.masked_select(seeds_.repeat_interleave(32, 0).ge(8) & seeds_.repeat_interleave(32, 0).le(247));
  EXPECT_TRUE(outer.abs().eq(8).all().item<bool>());
  EXPECT_NEAR(outer.to(at::kDouble).mean().item<double>(), 0, 0.5);
  EXPECT_NE(refused([&] { make("noise:norm=l2,at=corners"); }).find("no corners"), std::string::npos);

  // The ball is the seed's, wherever the parent is.
  at::Tensor far = seeds_[0].clone().fill_(255);
  std::vector<PickedParent> moved = {{far, seeds_[0], "", 0, 1, Rng(3)}};
  at::Tensor near = all(*linf, moved, {4, false}, 4).inputs.to(at::kInt) - seeds_[0].to(at::kInt);
  EXPECT_LE(near.abs().max().item<int>(), 8);
  at::Tensor around = all(*make("noise:eps=8/255,around=parent"), moved, {4, false}, 4).inputs.to(at::kInt);
  EXPECT_GE(around.min().item<int>(), 247);
  EXPECT_NE(refused([&] { make("noise:eps=0.001"); }).find("less than one step"), std::string::npos);
  EXPECT_NE(refused([&] { make("noise:eps=40"); }).find("40/255"), std::string::npos);

  auto proposal = linf->begin(moved, {4, false});
  at::Tensor first = proposal->next(4).inputs[0].to(at::kDouble) - seeds_[0].to(at::kDouble);
  auto figures = proposal->figures(0);
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].first, "linf");
  EXPECT_DOUBLE_EQ(figures[0].second, first.abs().max().item<double>() / 255);
  EXPECT_DOUBLE_EQ(figures[1].second, first.norm().item<double>() / 255);
}

TEST_F(GeneratorTest, NoiseOfSoundsUsesTheirSixteenBits) {
  GeneratorContext context;
  context.seeds = at::zeros({2, 1, 400}, at::kShort);
  auto generator = make_generator(Spec::parse("noise:eps=0.01"), context);
  std::vector<PickedParent> parents = {{context.seeds[0], context.seeds[0], "", 0, 1, Rng(3)}};
  at::Tensor made = all(*generator, parents, {8, false}, 8).inputs;
  EXPECT_EQ(made.scalar_type(), at::kShort);
  int most = made.to(at::kInt).abs().max().item<int>();
  EXPECT_LE(most, 327);
  EXPECT_GT(most, 300);
}

// What an author may leave to the public call: rounding, clipping, and inputs that are not finite.
class FloatGenerator : public Generator {
  class Once : public Proposal {
   public:
    Once(const Generator& generator, std::vector<PickedParent> parents, const PickOrder& order)
        : Proposal(generator, std::move(parents), order) {}

   private:
    Candidates run(std::int64_t most) override {
      Candidates result;
      result.each = due(most);
      result.inputs = at::full({static_cast<std::int64_t>(result.each.size()), 1, 2, 2}, 3.6);
      for (Candidate& candidate : result.each) {
        candidate.valid = true;
        candidate.kind = 0;
      }
      if (result.each.size() > 2) {
        result.inputs[1].fill_(-5);
        result.inputs[2][0][0][0] = std::nan("");
      }
      return result;
    }
    std::string run_provenance(std::size_t) const override { return "float"; }
  };
  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override {
    return std::make_unique<Once>(*this, std::move(parents), order);
  }
  at::Tensor run_make(const std::string&, const at::Tensor& parent, const at::Tensor&) const override { return parent; }
};

TEST_F(GeneratorTest, ThePublicCallBringsCandidatesToTheGrid) {
  at::Tensor image = at::zeros({1, 2, 2}, at::kByte);
  FloatGenerator generator;
  PickedParent parent{image, image, "", 0, 1, Rng(0)};
  std::unique_ptr<Proposal> proposal = generator.begin({parent}, {3, false});
  Candidates made = proposal->next(10);
  ASSERT_EQ(made.each.size(), 3U);
  EXPECT_EQ(made.inputs.scalar_type(), at::kByte);
  EXPECT_TRUE(at::equal(made.inputs[0], image.clone().fill_(4)));
  EXPECT_TRUE(at::equal(made.inputs[1], image));
  EXPECT_TRUE(made.each[0].valid);
  EXPECT_TRUE(made.each[1].valid);
  EXPECT_FALSE(made.each[2].valid) << "it is not a number";
  EXPECT_NE(refused([&] { generator.begin({}, {4, false}); }), "");
  PickedParent other{at::zeros({1, 2, 3}, at::kByte), image, "", 0, 1, Rng(0)};
  EXPECT_NE(refused([&] { generator.begin({parent, other}, {4, false}); }), "");
}

TEST(Radii, AreReadAsUsersWriteThem) {
  EXPECT_EQ(parse_radii(""), std::vector<double>());
  EXPECT_EQ(parse_radii("8/255"), std::vector<double>({8.0 / 255}));
  EXPECT_EQ(parse_radii("0.3,0,0.1,0.3"), std::vector<double>({0, 0.1, 0.3}));
  EXPECT_EQ(parse_radii("0..3/255"), std::vector<double>({0, 1.0 / 255, 2.0 / 255, 3.0 / 255}));
  EXPECT_EQ(parse_radii("2..3/255,1/255").size(), 3U);
  for (const char* wrong : {"x", "-1", "0..0.3", "3..1/255", "0..5000/255", "1,,2", "1/0", "nan"})
    EXPECT_NE(refused([&] { parse_radii(wrong); }), "") << wrong;
  EXPECT_EQ(radius_text(8.0 / 255, 255), "8/255");
  EXPECT_EQ(radius_text(0.3, 255), "0.3");
  EXPECT_EQ(radius_text(0, 255), "0");
}

TEST_F(GeneratorTest, AnAttackGoesOnWhereASmallerRadiusDidNotDo) {
  auto generator = make("attack:method=(pgd:steps=5),eps=(1/255,8/255,64/255)");
  EXPECT_EQ(generator->kinds(), std::vector<std::string>({"pgd 1/255", "pgd 8/255", "pgd 64/255"}));
  Made made = all(*generator, parents(), {1, false}, 1000);
  std::map<std::size_t, std::vector<bool>> valid;
  for (std::size_t i = 0; i < made.each.size(); ++i) {
    const Candidate& candidate = made.each[i];
    EXPECT_EQ(candidate.slot, static_cast<std::int64_t>(valid[candidate.parent].size()));
    valid[candidate.parent].push_back(candidate.valid);
    at::Tensor own = made.inputs[static_cast<std::int64_t>(i)];
    at::Tensor change = own.to(at::kInt) - seeds_[static_cast<std::int64_t>(candidate.parent)].to(at::kInt);
    std::int64_t most = candidate.slot == 0 ? 1 : candidate.slot == 1 ? 8 : 64;
    EXPECT_LE(change.abs().max().item<std::int64_t>(), most);
    if (candidate.valid) {
      EXPECT_NE(network_->run(own.unsqueeze(0)).logits.argmax(1).item<std::int64_t>(),
                labels_[static_cast<std::int64_t>(candidate.parent)].item<std::int64_t>());
    }
  }
  EXPECT_EQ(valid.size(), 6U);
  for (const auto& [parent, each] : valid) {
    // All but the last failed.
    for (std::size_t i = 0; i + 1 < each.size(); ++i) EXPECT_FALSE(each[i]);
  }
  EXPECT_GT(generator->passes(), 0);
  EXPECT_NE(refused([&] { make("attack:method=(pgd:eps=0.1),eps=0.2"); }), "");
  EXPECT_NE(refused([&] { make("attack:method=nothing"); }), "");
  EXPECT_NE(refused([&] { make("attack:target=10"); }), "");
}

}  // namespace
}  // namespace galvani
