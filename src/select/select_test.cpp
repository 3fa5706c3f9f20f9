#include "galvani/select/select.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/data/digits.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"
#include "galvani/select/evaluate.h"
#include "select/boosting.h"
#include "select/pass.h"

namespace galvani {
namespace {

std::unique_ptr<Network> random_network(const std::string& spec, std::int64_t micro_batch = 8) {
  Rng rng(1);
  Network::Options options;
  options.execution = {micro_batch, false};
  return Network::from_onnx(architectures().create(Spec::parse(spec), ArchitectureShape{1, 28, 28, 10}, rng), spec,
                            options);
}

struct Given {
  std::unique_ptr<Network> network = random_network("lenet5");
  Dataset pool = load_data("digits:test[0:70]");
  Dataset originals = load_data("digits:test[100:170]");
  Dataset train = load_data("digits:train[0:150]");

  Selection select(const std::string& by, std::uint64_t seed = 1, bool diverse = false,
                   const std::vector<std::int64_t>& budgets = {7, 14}) {
    DataView pool_view(pool), train_view(train), originals_view(originals);
    SelectRequest request;
    request.by = Spec::parse_list(by);
    request.budgets = budgets;
    request.train = &train_view;
    request.originals = &originals_view;
    request.seed = seed;
    request.diverse = diverse;
    return select_from(*network, pool_view, request);
  }
};

// Quick forms of those that take many passes.
std::string quick(const std::string& name) {
  if (name == "mc-dropout") return "mc-dropout:samples=5";
  if (name == "prima") return "prima:mutants=4,fit=40,rounds=5";
  if (name == "datis") return "datis:k=9";
  return name;
}

std::vector<std::string> all_selectors() {
  std::vector<std::string> names;
  for (const std::string& name : selectors().names()) {
    if (name != "prima" || BoostedRanker::available()) names.push_back(quick(name));
  }
  names.emplace_back("nss:pair=original");
  names.emplace_back("nss:repeats=3,k=30");
  names.emplace_back("nss:find=nss:only=blur");
  names.emplace_back("kmnc:order=total");
  for (const char* with : {"output", "train", "originals"}) names.push_back(std::string("fused:with=") + with);
  names.emplace_back("fused:among=40");
  names.emplace_back("nns:among=40");
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

std::string error_text(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Select, EverySelectorRanksAllOfThePool) {
  Given given;
  for (bool diverse : {false, true}) {
    Selection all = given.select(joined(all_selectors()), 1, diverse);
    ASSERT_EQ(all.by.size(), all_selectors().size());
    for (const Selected& selected : all.by) {
      EXPECT_EQ(std::set<std::int64_t>(selected.ranking.order.begin(), selected.ranking.order.end()).size(), 70U)
          << selected.spec;
      EXPECT_EQ(selected.ranking.scores.size(), 70U);
      EXPECT_EQ(selected.picks[0].size(), 7U);
      EXPECT_EQ(std::set<std::int64_t>(selected.picks[1].begin(), selected.picks[1].end()).size(), 14U);
      EXPECT_EQ(selected.unscored, 0) << selected.spec;
    }
    Predictions expected = predict(*given.network, given.pool.images);
    EXPECT_TRUE(at::equal(all.predicted, expected.labels));
    EXPECT_TRUE(at::allclose(all.confidence, expected.confidence));
  }
}

// Alone or in company, with one worker or three.
TEST(Select, TheSameSeedGivesTheSameRanking) {
  Given given;
  set_workers(3);
  Selection together = given.select(joined(all_selectors()));
  set_workers(1);
  std::size_t at = 0;
  for (const std::string& name : all_selectors()) {
    Selection alone = given.select(name);
    EXPECT_EQ(alone.by[0].ranking.order, together.by[at].ranking.order) << name;
    EXPECT_EQ(alone.by[0].picks, together.by[at].picks) << name;
    at += 1;
  }
  set_workers(2);
}

TEST(Select, SeedsMatterToThoseThatAreRandom) {
  Given given;
  Selection one = given.select(joined(all_selectors()), 1), two = given.select(joined(all_selectors()), 2);
  SelectContext context{*given.network, given.pool.type(), 70, 1, true, true};
  for (std::size_t i = 0; i < one.by.size(); ++i) {
    bool random = make_selector(Spec::parse(all_selectors()[i]), context)->random();
    if (one.by[i].id == "nss" && all_selectors()[i].find("original") != std::string::npos) continue;  // may agree
    EXPECT_EQ(one.by[i].ranking.scores != two.by[i].ranking.scores, random) << one.by[i].spec;
  }
}

TEST(Select, NssCountsUnitsOfTheLastEncoderTap) {
  auto lenet1 = random_network("lenet1");
  FeatureNeed need = feature_of(*lenet1, "encoder");
  SharedPass pass(*lenet1, need);
  EXPECT_EQ(pass.run(load_data("digits:test[0:3]").images, false).features[0].size(1), 12 * 4 * 4);
  EXPECT_EQ(describe(*lenet1, need), "the input of fc1");
  auto lenet5 = random_network("lenet5");
  EXPECT_EQ(describe(*lenet5, feature_of(*lenet5, "encoder")), "the input of fc1");
  EXPECT_EQ(describe(*lenet5, feature_of(*lenet5, "penultimate")), "the input of fc3");
  EXPECT_EQ(describe(*lenet5, feature_of(*lenet5, "conv2")), "units of conv2");
  EXPECT_NE(error_text([&] { feature_of(*lenet5, "conv*"); }), "");
}

TEST(Select, NssWithOriginalsIsItsFormula) {
  Given given;
  Selection found = given.select("nss:pair=original,sample=100,k=5");
  SharedPass pass(*given.network, feature_of(*given.network, "encoder"));
  at::Tensor change =
      (pass.run(given.pool.images, false).features[0] - pass.run(given.originals.images, false).features[0]).abs();
  std::int64_t count = change.size(1) * 5 / 100;
  at::Tensor top = std::get<1>(change.sum(0, false, at::kDouble).topk(count));
  at::Tensor expected = change.index_select(1, top).sum(1, false, at::kDouble);
  for (std::int64_t i = 0; i < 70; ++i)
    EXPECT_NEAR(found.by[0].ranking.scores[static_cast<std::size_t>(i)], expected[i].item<double>(), 1e-4);
}

TEST(Select, DsaIsItsFormula) {
  Given given;
  Selection found = given.select("dsa");
  Tracer tracer(*given.network, given.network->select_taps("default"), NeuronUnit::channel);
  // The last tap before the output: 84 neurons of fc2.
  const TraceBlock& block = tracer.layout().block("fc2");
  Traces train = tracer.trace(given.train.images), pool = tracer.trace(given.pool.images);
  auto row = [&](const Traces& traces, std::int64_t i) {
    return traces.values[i].narrow(0, block.first, block.count).to(at::kDouble);
  };
  auto verdict = [](const Traces& traces, std::int64_t i) { return traces.predicted[i].item<std::int64_t>(); };
  for (std::int64_t i = 0; i < 70; ++i) {
    double own = -1, other = -1;
    std::int64_t nearest = -1;
    for (std::int64_t j = 0; j < train.size(); ++j) {
      if (verdict(train, j) != verdict(pool, i)) continue;
      auto distance = (row(pool, i) - row(train, j)).norm().item<double>();
      if (own < 0 || distance < own) {
        own = distance;
        nearest = j;
      }
    }
    for (std::int64_t j = 0; j < train.size() && nearest >= 0; ++j) {
      if (verdict(train, j) == verdict(pool, i)) continue;
      auto distance = (row(train, nearest) - row(train, j)).norm().item<double>();
      if (other < 0 || distance < other) other = distance;
    }
    double score = found.by[0].ranking.scores[static_cast<std::size_t>(i)];
    if (own < 0 || other < 0) {
      EXPECT_TRUE(std::isnan(score));
    } else {
      EXPECT_NEAR(score, own / other, 1e-6 * (1 + own / other));
    }
  }
}

TEST(Select, SetsIsGiniMadeDiverse) {
  Given given;
  EXPECT_EQ(given.select("sets").by[0].picks, given.select("gini", 1, true).by[0].picks);
}

// All of a pool is as good as a sample of all of it; a smaller sample gives other scores.
TEST(Select, ASampleOfLargePoolsIsAsked) {
  Given given;
  for (std::string by : {"fused:with=train", "nns:k=5"}) {
    Selection all = given.select(by + "," + by + ",among=70," + by + ",among=69");
    EXPECT_EQ(all.by[0].ranking.scores, all.by[1].ranking.scores);
    EXPECT_FALSE(all.by[0].random);
    EXPECT_TRUE(all.by[2].random);
    EXPECT_NE(all.by[0].ranking.scores, all.by[2].ranking.scores);
  }
}

TEST(Select, CopiesAreRefusedOrLeftOut) {
  Given given;
  Dataset twice = load_data("digits:test[0:30]+digits:test[10:20]");
  DataView pool(twice), train(given.train);
  SelectRequest request;
  request.by = Spec::parse_list("gini,datis:k=9,sets");
  request.budgets = {5, 40};
  request.train = &train;
  EXPECT_TRUE(select_from(*given.network, pool, request).copies.empty());
  request.copies = PoolCopies::refused;
  try {
    select_from(*given.network, pool, request);
    ADD_FAILURE() << "copies are not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("10 of the 40 inputs are exact copies of others: 30 is 10, 31 is 11, 32 is 12, ...; "
                        "--skip-broken leaves them out"),
              std::string::npos)
        << error.what();
  }
  request.copies = PoolCopies::left_out;
  Selection selection = select_from(*given.network, pool, request);
  ASSERT_EQ(selection.copies.size(), 10U);
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(selection.copies[static_cast<std::size_t>(i)], (std::pair<std::int64_t, std::int64_t>{30 + i, 10 + i}));
  }
  for (const Selected& selected : selection.by) {
    EXPECT_EQ(selected.picks[0].size(), 5U);
    std::set<std::int64_t> different;
    for (std::int64_t row : selected.picks[1]) different.insert(row < 30 ? row : row - 20);
    EXPECT_EQ(selected.picks[1].size(), 30U) << selected.id;
    EXPECT_EQ(different.size(), 30U) << selected.id;
  }
}

TEST(Select, FlippedVerdictsComeFirst) {
  Given given;
  // Half of the originals are the inputs themselves.
  given.originals.images.narrow(0, 0, 35).copy_(given.pool.images.narrow(0, 0, 35));
  Selection found = given.select("flip");
  at::Tensor before = predict(*given.network, given.originals.images).labels;
  bool flipped = true;
  for (std::int64_t row : found.by[0].ranking.order) {
    bool now = (found.predicted[row] != before[row]).item<bool>();
    EXPECT_TRUE(flipped || !now);
    flipped = now;
  }
}

TEST(Select, WhatIsNotANumberComesFirst) {
  Given given;
  // An overflow that black images have not.
  for (const char* name : {"conv1.weight", "fc3.weight"})
    given.network->set_parameter(name, given.network->parameter(name) * 1e21);
  given.pool.images.narrow(0, 0, 60).zero_();
  Selection found = given.select("gini,softmax,ats,nac,nss,nns,sets,flip,internal-gini");
  auto count = (found.predicted == kNotANumber).sum().item<std::int64_t>();
  ASSERT_GT(count, 0);
  ASSERT_LT(count, 70);
  for (const Selected& selected : found.by) {
    for (std::int64_t i = 0; i < count; ++i)
      EXPECT_EQ(found.predicted[selected.ranking.order[static_cast<std::size_t>(i)]].item<std::int64_t>(), kNotANumber)
          << selected.id;
  }
}

TEST(Select, EqualScoresAreInAnOrderOfTheSeed) {
  Given given;
  given.pool.images.zero_();
  auto first = given.select("gini", 1).by[0].ranking.order, second = given.select("gini", 2).by[0].ranking.order;
  EXPECT_NE(first, second);
  EXPECT_EQ(first, given.select("gini", 1).by[0].ranking.order);
}

TEST(Select, SaysWhatIsMissing) {
  Given given;
  DataView pool(given.pool);
  SelectRequest request;
  request.budgets = {5};
  auto with = [&](const std::string& by) {
    request.by = Spec::parse_list(by);
    return error_text([&] { select_from(*given.network, pool, request); });
  };
  EXPECT_NE(with("datis").find("--train"), std::string::npos);
  EXPECT_NE(with("nss:pair=original").find("--originals"), std::string::npos);
  EXPECT_NE(with("gimi").find("did you mean 'gini'"), std::string::npos);
  request.budgets = {71};
  EXPECT_NE(with("gini").find("71 inputs cannot be picked from the 70"), std::string::npos);
  request.budgets = {5};
  Dataset few = load_data("digits:test[0:30]");
  DataView few_view(few);
  request.originals = &few_view;
  EXPECT_NE(with("flip").find("has 30 inputs, but the pool"), std::string::npos);
  Dataset unlabelled = given.train;
  unlabelled.labels = at::full_like(unlabelled.labels, Labelled::kUnlabelled);
  DataView unlabelled_view(unlabelled);
  request.train = &unlabelled_view;
  EXPECT_NE(with("datis").find("without a label"), std::string::npos);
}

TEST(Select, EvaluationCountsFaultsOfThePicks) {
  Given given;
  DataView pool(given.pool), train(given.train);
  SelectRequest request;
  request.by = Spec::parse_list("gini,random,datis:k=5");
  request.train = &train;
  request.budgets = {7, 14};
  PoolEvaluation found = evaluate_selectors(*given.network, pool, request, 3);
  Selection selection = select_from(*given.network, pool, request);
  auto wrong = (selection.predicted != given.pool.labels).sum().item<std::int64_t>();
  EXPECT_EQ(found.faults, wrong);
  EXPECT_EQ(found.inputs, 70);
  ASSERT_EQ(found.by.size(), 3U);
  EXPECT_EQ(found.by[0].runs.size(), 1U);  // gini is the same for every seed
  EXPECT_EQ(found.by[1].runs.size(), 3U);
  for (std::size_t b = 0; b < 2; ++b) {
    std::int64_t expected = 0;
    for (std::int64_t row : selection.by[2].picks[b])
      expected += (selection.predicted[row] != given.pool.labels[row]).item<bool>() ? 1 : 0;
    EXPECT_EQ(found.by[2].runs[0].at[b].faults, expected);
    EXPECT_EQ(found.by[2].runs[0].at[b].picks, static_cast<std::int64_t>(selection.by[2].picks[b].size()));
  }
  Dataset unlabelled = given.pool;
  unlabelled.labels = at::full_like(unlabelled.labels, Labelled::kUnlabelled);
  DataView unlabelled_view(unlabelled);
  EXPECT_NE(
      error_text([&] { evaluate_selectors(*given.network, unlabelled_view, request, 1); }).find("without a label"),
      std::string::npos);
}

TEST(Select, DropoutOfTheModelOrMasksInItsPlace) {
  Given given;
  Selection masked = given.select("mc-dropout:samples=4");
  EXPECT_NE(masked.by[0].notes.at(0).find("has no dropout"), std::string::npos);
  for (double score : masked.by[0].ranking.scores)
    EXPECT_TRUE(score == 0 || score == .25 || score == .5 || score == .75);
}

}  // namespace
}  // namespace galvani
