// What holds for every registered attack.
#include <gtest/gtest.h>

#include <algorithm>

#include "attack/testing.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

using testing::attacked;
using testing::DigitsCase;
using testing::error_of;
using testing::task_of;

// Fewer steps than by default: laws do not depend on strength.
std::string quick(const std::string& name) {
  static const std::map<std::string, std::string> settings = {
      {"apgd", "steps=15"},        {"fab", "steps=8,classes=3"},
      {"square", "queries=60"},    {"auto", "steps=8,queries=40,classes=3"},
      {"cw", "steps=60,search=4"}, {"pgd", "restarts=2,steps=8"}};
  auto found = settings.find(name);
  return found == settings.end() ? name : name + ":" + found->second;
}

std::string with(const std::string& spec, const std::string& setting) {
  return spec + (spec.find(':') == std::string::npos ? ":" : ",") + setting;
}

bool has_option(const std::string& name, const std::string& option) {
  const OptionSchema& schema = attacks().at(name).schema;
  return std::any_of(schema.begin(), schema.end(), [&](const OptionInfo& info) { return info.name == option; });
}

// Every way to measure a change that an attack offers.
std::vector<std::string> variants(const std::string& name) {
  if (!has_option(name, "norm")) return {quick(name)};
  return {with(quick(name), "norm=linf"), with(quick(name), "norm=l2")};
}

void expect_same(const Attacked& a, const Attacked& b, const std::string& what) {
  EXPECT_TRUE(a.inputs.equal(b.inputs)) << what;
  EXPECT_TRUE(a.logits.equal(b.logits)) << what;
  EXPECT_TRUE(a.success.equal(b.success)) << what;
  EXPECT_TRUE(a.success_float.equal(b.success_float)) << what;
  EXPECT_TRUE(a.forward.equal(b.forward)) << what;
  EXPECT_TRUE(a.backward.equal(b.backward)) << what;
}

class EveryAttack : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryAttack, IsTheSameForAnyNumberOfThreads) {
  DigitsCase digits(20);
  for (const std::string& spec : variants(GetParam())) {
    set_workers(1);
    Attacked one = attacked(*digits.network, spec, task_of(digits.images, digits.labels));
    set_workers(2);
    Attacked two = attacked(*digits.network, spec, task_of(digits.images, digits.labels));
    expect_same(one, two, spec);
  }
}

TEST_P(EveryAttack, DrawsForARowFromItsOwnStreamAlone) {
  DigitsCase digits(16);
  for (const std::string& spec : variants(GetParam())) {
    AttackTask task = task_of(digits.images, digits.labels);
    Attacked all = attacked(*digits.network, spec, task);
    // Twice the row before it: same places in a micro-batch of 16, but a stream more beside them.
    AttackTask more = task;
    more.inputs = at::cat({task.inputs, task.inputs.narrow(0, 2, 1)});
    more.labels = at::cat({task.labels, task.labels.narrow(0, 2, 1)});
    more.streams.emplace_back(99);
    Attacked beside = attacked(*digits.network, spec, more);
    EXPECT_TRUE(beside.success.narrow(0, 0, 16).equal(all.success)) << spec;
    // An author that draws from a shared stream would move every row.
    at::Tensor moved = beside.inputs.narrow(0, 0, 16).ne(all.inputs).flatten(1).any(1);
    EXPECT_LE(moved.sum().item<std::int64_t>(), 3) << spec;
  }
}

TEST_P(EveryAttack, SucceedsByWhatWouldBeSaved) {
  DigitsCase digits(24);
  for (const std::string& spec : variants(GetParam())) {
    for (bool targeted : {false, true}) {
      AttackTask task = task_of(digits.images, digits.labels);
      if (targeted) task.targets = (digits.labels + 3).remainder(10);
      Attacked result = attacked(*digits.network, spec, task);
      at::Tensor verdict = predict(*digits.network, result.inputs).labels;
      EXPECT_TRUE(verdict.equal(result.predicted)) << spec;
      at::Tensor wrong = targeted ? verdict.eq(task.targets) : verdict.ne(task.labels);
      EXPECT_TRUE(wrong.logical_and(result.right).equal(result.success)) << spec;
      // Nothing survives rounding that was not there.
      EXPECT_FALSE(result.success.logical_and(result.success_float.logical_not()).any().item<bool>()) << spec;
      for (std::int64_t row = 0; row < 24; ++row) {
        bool changed = !result.inputs[row].equal(digits.images[row]);
        EXPECT_EQ(changed, result.success[row].item<bool>()) << spec << " row " << row;
        EXPECT_EQ(changed, result.linf[row].item<double>() > 0);
        EXPECT_GE(result.forward[row].item<std::int64_t>(), 1);
      }
      // What was wrong from the start is left alone.
      EXPECT_FALSE(result.right[0].item<bool>());
      EXPECT_EQ(result.forward[0].item<std::int64_t>(), 1);
      EXPECT_EQ(result.inputs.scalar_type(), at::kByte);
    }
  }
}

TEST_P(EveryAttack, NeverGoesBeyondItsBound) {
  if (!has_option(GetParam(), "eps")) GTEST_SKIP() << "has no bound";
  DigitsCase digits(50);
  std::int64_t successes = 0;
  for (const std::string& spec : variants(GetParam())) {
    bool linf = spec.find("norm=linf") != std::string::npos;
    for (double eps : {1.0 / 255, 3.7 / 255, 0.1, 0.7}) {
      if (!linf) eps *= 8;
      AttackTask task = task_of(digits.images, digits.labels, static_cast<std::uint64_t>(eps * 1000));
      Attacked result = attacked(*digits.network, with(spec, fmt::format("eps={:.17g}", eps)), task);
      auto most = (linf ? result.linf : result.l2).max().item<double>();
      EXPECT_LE(most, linf ? std::floor(eps * 255 + 1e-6) / 255 + 1e-12 : eps + 1e-9) << spec << " eps " << eps;
      successes += result.success.sum().item<std::int64_t>();
    }
    Attacked nothing = attacked(*digits.network, with(spec, "eps=0"), task_of(digits.images, digits.labels));
    EXPECT_EQ(nothing.success.sum().item<std::int64_t>(), 0);
    EXPECT_TRUE(nothing.inputs.equal(digits.images));
  }
  EXPECT_GT(successes, 25) << "an attack that finds nothing keeps any bound";
}

TEST_P(EveryAttack, TakesSoundsToo) {
  Rng rng(3);
  at::Tensor weight = at::empty({3, 400});
  rng.fill_normal(weight.data_ptr<float>(), 1200);
  auto network =
      testing::scripted_network("  return torch.matmul(x.flatten(1), self.w.t())\n", {{"w", weight}}, {1, 400});
  at::Tensor sounds = at::empty({6, 1, 400}, at::kShort);
  for (std::int64_t i = 0; i < sounds.numel(); ++i)
    sounds.data_ptr<std::int16_t>()[i] = static_cast<std::int16_t>(rng.between(-9000, 9000));
  at::Tensor labels = predict(*network, sounds).labels;
  for (std::string spec : variants(GetParam())) {
    bool bounded = has_option(GetParam(), "eps");
    if (bounded) spec = with(spec, spec.find("norm=l2") == std::string::npos ? "eps=0.2" : "eps=4");
    Attacked result = attacked(*network, spec, task_of(sounds, labels));
    EXPECT_EQ(result.inputs.scalar_type(), at::kShort);
    EXPECT_GE(result.success.sum().item<std::int64_t>(), 4) << spec;
  }
}

TEST_P(EveryAttack, TellsItsResolvedSpec) {
  auto attack = make_attack(Spec::parse(GetParam()));
  EXPECT_EQ(attack->id(), GetParam());
  EXPECT_EQ(make_attack(Spec::parse(attack->spec()))->spec(), attack->spec());
  EXPECT_EQ(attack->bounded(), has_option(GetParam(), "eps"));
  EXPECT_EQ(attack->epsilon() > 0, attack->bounded());
}

TEST_P(EveryAttack, RefusesWhatCannotBe) {
  DigitsCase digits(4);
  AttackTask task = task_of(digits.images, digits.labels);
  task.labels = digits.labels + 7;
  EXPECT_NE(error_of([&] { attacked(*digits.network, GetParam(), task); }).find("has no class"), std::string::npos);
  task = task_of(digits.images, digits.labels);
  task.targets = at::full({4}, 10, at::kLong);
  EXPECT_NE(error_of([&] { attacked(*digits.network, GetParam(), task); }).find("has no class 10"), std::string::npos);
  task.targets = digits.labels;
  EXPECT_NE(error_of([&] { attacked(*digits.network, GetParam(), task); }).find("must differ"), std::string::npos);
  task = task_of(digits.images.to(at::kFloat), digits.labels);
  EXPECT_NE(error_of([&] { attacked(*digits.network, GetParam(), task); }).find("what files hold"), std::string::npos);
  EXPECT_NE(error_of([&] { make_attack(Spec::parse(GetParam() + ":nonsense=1")); }), "");
}

INSTANTIATE_TEST_SUITE_P(Attacks, EveryAttack, ::testing::ValuesIn(attacks().names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace galvani
