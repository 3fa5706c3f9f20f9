#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "galvani/attribute/excitable.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/data/dataset.h"
#include "galvani/generate/changed.h"
#include "galvani/generate/generator.h"
#include "galvani/model/train.h"
#include "generate/testing.h"

namespace galvani {
namespace {

template <class Action>
std::string told(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// A network that has learned something: what breaks it is not just anything.
class SwarmTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    the_network = testing::random_lenet().release();
    Dataset data = load_data("digits:train[0:1500]");
    TrainOptions options;
    options.epochs = 3;
    train(*the_network, data, load_data("digits:test[0:100]"), options, [](const EpochReport&) {});
    data = load_data("digits:test[0:60]");
    at::Tensor right =
        the_network->run(data.images).logits.argmax(1).eq(data.labels).nonzero().squeeze(1).slice(0, 0, 6);
    the_seeds = data.images.index_select(0, right);
    the_labels = data.labels.index_select(0, right);
  }
  static void TearDownTestSuite() {
    delete the_network;
    the_seeds.reset();
    the_labels.reset();
  }

  static std::unique_ptr<Generator> make(const std::string& spec) {
    GeneratorContext context;
    context.seeds = the_seeds;
    context.network = the_network;
    return make_generator(Spec::parse(spec), context);
  }
  static std::vector<PickedParent> parents() {
    std::vector<PickedParent> result;
    for (std::int64_t i = 0; i < the_seeds.size(0); ++i)
      result.push_back({the_seeds[i], the_seeds[i], "", the_labels[i].item<std::int64_t>(), i + 1, Rng(7)});
    return result;
  }

  struct Search {
    std::vector<Candidate> each;
    std::vector<std::string> provenances;
    std::vector<std::vector<std::pair<std::string, double>>> figures;
    at::Tensor inputs;
    at::Tensor logits;
    std::int64_t faults = 0;
    std::int64_t passes = 0;
  };
  // All of it, as a campaign would: what the network says is told.
  static Search search(const std::string& spec, const PickOrder& order, std::int64_t portion = 10000) {
    auto generator = make(spec);
    auto proposal = generator->begin(parents(), order);
    Search found;
    std::vector<at::Tensor> inputs, logits;
    while (true) {
      Candidates part = proposal->next(portion);
      if (part.each.empty()) break;
      Outcome outcome;
      at::Tensor all = the_network->run(part.inputs).logits;
      std::vector<std::int64_t> rows;
      for (std::size_t i = 0; i < part.each.size(); ++i) {
        found.each.push_back(part.each[i]);
        found.provenances.push_back(proposal->provenance(i));
        found.figures.push_back(proposal->figures(i));
        if (part.each[i].valid) rows.push_back(static_cast<std::int64_t>(i));
      }
      outcome.rows = rows;
      outcome.kept.assign(rows.size(), 0);
      outcome.logits = all.index_select(0, at::tensor(rows, at::kLong));
      outcome.predicted = outcome.logits.argmax(1);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        auto parent = static_cast<std::int64_t>(part.each[static_cast<std::size_t>(rows[i])].parent);
        bool fault = outcome.predicted[static_cast<std::int64_t>(i)].item<std::int64_t>() !=
                     the_labels[parent].item<std::int64_t>();
        found.faults += fault ? 1 : 0;
      }
      inputs.push_back(part.inputs);
      logits.push_back(all);
      proposal->learn(outcome);
    }
    found.inputs = at::cat(inputs);
    found.logits = at::cat(logits);
    found.passes = generator->passes();
    return found;
  }

  static double loss(const at::Tensor& logits, std::int64_t label) {
    return -logits.to(at::kDouble).log_softmax(0)[label].item<double>();
  }

  static Network* the_network;
  static at::Tensor the_seeds;
  static at::Tensor the_labels;
};
Network* SwarmTest::the_network = nullptr;
at::Tensor SwarmTest::the_seeds;
at::Tensor SwarmTest::the_labels;

TEST_F(SwarmTest, SearchesAllParentsSideBySideAndStaysInTheBall) {
  for (const char* name : {"swarm", "genetic"}) {
    for (const char* fitness : {"loss", "excitable"}) {
      std::string spec = std::string(name) + ":population=5,generations=4";
      EXPECT_EQ(usual_energy(spec), 21);
      spec += ",eps=40/255,by=(path:points=4,tolerance=0),fitness=" + std::string(fitness);
      Search found = search(spec, {21, false});
      ASSERT_EQ(found.each.size(), 6U * 21) << spec;
      // A generation of all, then the next, then the best of each.
      for (std::size_t i = 0; i < found.each.size(); ++i) {
        bool last = i >= 6U * 20;
        EXPECT_EQ(found.each[i].parent, last ? i - 6U * 20 : i % 30 / 5);
        EXPECT_EQ(found.each[i].slot, static_cast<std::int64_t>(last ? 20 : i / 30 * 5 + i % 5));
        EXPECT_EQ(found.each[i].kind, last ? 1 : 0);
        EXPECT_FALSE(found.each[i].repeatable);
        EXPECT_EQ(kind_of(found.provenances[i]), std::string(name) + (last ? "-final" : ""));
        auto parent = static_cast<std::int64_t>(found.each[i].parent);
        at::Tensor change = found.inputs[static_cast<std::int64_t>(i)].to(at::kInt) - the_seeds[parent].to(at::kInt);
        EXPECT_LE(change.abs().max().item<int>(), 40);
        EXPECT_NEAR(found.figures[i][2].second, change.abs().max().item<int>() / 255.0, 1e-12);
      }
      // The best of all is shown once more.
      for (std::int64_t parent = 0; parent < 6; ++parent) {
        std::int64_t same = 0;
        for (std::int64_t i = 0; i < 120; ++i)
          same += found.each[static_cast<std::size_t>(i)].parent == static_cast<std::size_t>(parent) &&
                          at::equal(found.inputs[i], found.inputs[120 + parent])
                      ? 1
                      : 0;
        EXPECT_GE(same, 1) << spec;
      }
      // Of excitement 4 derivatives and both ends, for 5 x 4 candidates and the seed; losses are what is shown anyway.
      EXPECT_EQ(found.passes, fitness == std::string("loss") ? 0 : 6 * 21 * 6);
    }
  }
}

TEST_F(SwarmTest, LossRisesFromGenerationToGeneration) {
  for (const char* name : {"swarm", "genetic"}) {
    Search found = search(std::string(name) + ":population=20,generations=12,eps=0.3,fitness=loss", {241, false});
    for (std::size_t parent = 0; parent < 6; ++parent) {
      std::map<std::int64_t, double> best;
      double final = 0;
      for (std::size_t i = 0; i < found.each.size(); ++i) {
        if (found.each[i].parent != parent) continue;
        double own = loss(found.logits[static_cast<std::int64_t>(i)], parents()[parent].label);
        if (found.each[i].kind == 1) final = own;
        double& so_far = best[found.each[i].slot / 20];
        so_far = std::max(so_far, own);
      }
      double most = 0;
      for (const auto& [generation, own] : best) most = std::max(most, own);
      EXPECT_NEAR(final, most, 1e-5) << name;
      EXPECT_GT(most, 1.3 * best[0]) << name;
    }
  }
}

// Its fitness, found anew by definition: values of the change above λ.
TEST_F(SwarmTest, CountsExcitableNeurons) {
  Search found =
      search("swarm:population=6,generations=2,eps=0.2,lambda=0.02,by=(path:points=8,tolerance=0)", {13, false});
  std::vector<std::int64_t> owners;
  for (const Candidate& candidate : found.each) owners.push_back(static_cast<std::int64_t>(candidate.parent));
  at::Tensor rows = at::tensor(owners, at::kLong);
  LossGame game(*the_network, the_network->select_taps("default"), found.inputs, the_seeds.index_select(0, rows),
                the_labels.index_select(0, rows));
  at::Tensor values = make_shapley(Spec::parse("path:points=8,tolerance=0"))->estimate(game, Rng(1)).values;
  std::int64_t off = 0, some = 0;
  for (std::size_t i = 0; i < found.each.size(); ++i) {
    auto share = values[static_cast<std::int64_t>(i)].gt(0.02).to(at::kDouble).mean().item<double>();
    ASSERT_EQ(found.figures[i].back().first, "fitness");
    // Values at the very threshold may fall on either side.
    off += std::abs(found.figures[i].back().second - share) > 1.5 / 26 ? 1 : 0;
    some += share > 0 ? 1 : 0;
  }
  EXPECT_EQ(off, 0);
  EXPECT_GT(some, 40);
}

TEST_F(SwarmTest, EndsWhereEnoughNeuronsAreExcited) {
  Search all =
      search("swarm:population=6,generations=8,eps=0.3,by=(path:points=4,tolerance=0),until=0.04", {49, false});
  EXPECT_LT(all.each.size(), 6U * 49);
  std::int64_t finals = 0;
  for (const auto& candidate : all.each) finals += candidate.kind;
  EXPECT_EQ(finals, 6);
}

TEST_F(SwarmTest, IsTheSameInPortionsOnAnyThreads) {
  for (const char* spec : {"swarm:population=6,generations=3,eps=0.2,by=(path:points=4,tolerance=0)",
                           "swarm:population=6,generations=3,eps=0.2,fitness=loss",
                           "genetic:population=6,generations=3,eps=0.2,fitness=gain"}) {
    Search once = search(spec, {19, false});
    Search portions = search(spec, {19, false}, 5);
    EXPECT_TRUE(at::equal(once.inputs, portions.inputs)) << spec;
    EXPECT_EQ(once.provenances, portions.provenances) << spec;
    int before = workers().size();
    set_workers(before == 1 ? 3 : 1);
    EXPECT_TRUE(at::equal(once.inputs, search(spec, {19, false}).inputs)) << spec;
    set_workers(before);
  }
}

TEST_F(SwarmTest, GainsAreBeyondTheSeedAndWhatWentBefore) {
  Search found = search("swarm:population=8,generations=3,eps=0.3,fitness=gain,criterion=tknc:k=1", {25, false});
  std::map<std::size_t, double> sums;
  for (std::size_t i = 0; i < found.each.size(); ++i) {
    if (found.each[i].kind == 0) sums[found.each[i].parent] += found.figures[i].back().second;
  }
  // At most all neurons but those that the seed has covered, one a tap.
  for (const auto& [parent, sum] : sums) EXPECT_LE(sum, 26 - 3);
  EXPECT_NE(told([] { make("swarm:fitness=gain,criterion=kmnc"); }).find("galvani profile"), std::string::npos);
}

TEST_F(SwarmTest, TakesWhatThereIsToMake) {
  EXPECT_EQ(search("swarm:fitness=loss", {1, false}).each.size(), 6U);
  EXPECT_EQ(search("swarm:fitness=loss", {8, false}).each.size(), 6U * 8);
  EXPECT_EQ(search("swarm:population=3,fitness=loss", {9, false}).each.size(), 6U * 7) << "2 generations and the best";
  EXPECT_NE(told([] { make("swarm:eps=1/1000"); }).find("less than one step"), std::string::npos);
  EXPECT_NE(told([] { make("swarm:by=nothing"); }), "");
  EXPECT_NE(told([] { make("swarm:fitness=los"); }), "");
}

TEST_F(SwarmTest, GoesOnFromAParentThatWasChanged) {
  auto generator = make("swarm:fitness=loss,start=seed,eps=0.1");
  at::Tensor changed = the_seeds[0].clone();
  changed[0][14][14] =
      changed[0][14][14].item<int>() > 127 ? changed[0][14][14].item<int>() - 20 : changed[0][14][14].item<int>() + 20;
  auto proposal =
      generator->begin({{changed, the_seeds[0], "", the_labels[0].item<std::int64_t>(), 1, Rng(3)}}, {4, false});
  Candidates first = proposal->next(10);
  EXPECT_TRUE(at::equal(first.inputs[0], changed));
  EXPECT_FALSE(first.each[0].valid) << "it is the parent itself";
  EXPECT_TRUE(at::equal(first.inputs[1], the_seeds[0]));
}

TEST_F(SwarmTest, OneChangedInputOfEach) {
  Changed noise = changed_by(*make("noise:eps=0.3"), *the_network, the_seeds, the_labels, Rng(1));
  EXPECT_EQ(noise.rows.size(), 6U);
  Changed swarm = changed_by(*make("swarm:fitness=loss,population=20,generations=10,eps=0.3"), *the_network, the_seeds,
                             the_labels, Rng(1));
  EXPECT_EQ(swarm.rows.size(), 6U);
  EXPECT_GE(swarm.fooling, noise.fooling);
  at::Tensor said = the_network->run(swarm.inputs).logits.argmax(1);
  EXPECT_EQ(said.ne(the_labels).sum().item<std::int64_t>(), swarm.fooling);
  Changed attack = changed_by(*make("attack:eps=0.3"), *the_network, the_seeds, the_labels, Rng(1));
  EXPECT_GT(attack.fooling, 3);
  EXPECT_EQ(attack.fooling, static_cast<std::int64_t>(attack.rows.size()));
}

}  // namespace
}  // namespace galvani
