#include "generate/fitness.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/data/dataset.h"
#include "galvani/trace/trace.h"
#include "generate/testing.h"

namespace galvani {
namespace {

class FitnessTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Fitness> make(const std::string& options) {
    return make_fitness(Options("fitness", fitness_options(), Spec::parse("fitness:" + options)), network());
  }
  static Network* network() {
    static std::unique_ptr<Network> one = testing::random_lenet();
    return one.get();
  }
  // Two seeds, and two candidates of each.
  static std::vector<PickedParent> parents() {
    Dataset data = load_data("digits:test[0:2]");
    std::vector<PickedParent> result;
    for (std::int64_t i = 0; i < 2; ++i)
      result.push_back({data.images[i], data.images[i], "", data.labels[i].item<std::int64_t>(), i + 1, Rng(1)});
    return result;
  }
  static at::Tensor candidates() { return load_data("digits:test[10:14]").images; }
  static double loss(const at::Tensor& input, std::int64_t label) {
    return -network()->run(input.unsqueeze(0)).logits[0].to(at::kDouble).log_softmax(0)[label].item<double>();
  }
};

TEST_F(FitnessTest, LossFollowsFromScores) {
  auto fitness = make("fitness=loss");
  EXPECT_EQ(fitness->begin(parents()), nullptr);
  // Of two classes that score the same, log 2; of one that leads by log 3, -log 3/4 and -log 1/4.
  EXPECT_NEAR(fitness->of_scores(at::tensor({1.0F, 1.0F}), 0), std::log(2), 1e-7);
  at::Tensor lead = at::tensor({static_cast<float>(std::log(3)), 0.0F});
  EXPECT_NEAR(fitness->of_scores(lead, 0), std::log(4.0 / 3), 1e-6);
  EXPECT_NEAR(fitness->of_scores(lead, 1), std::log(4), 1e-6);
  float none = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(fitness->of_scores(at::tensor({none, 1.0F}), 0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isinf(fitness->enough()));
}

TEST_F(FitnessTest, ExcitementIsTheShareOfNeuronsAboveLambda) {
  // The values of the ten neurons of the last layer add up to the change of the loss less that with all of them at
  // zero, which is none. So their mean is a tenth of it: some neuron lies at or above it, and some at or below.
  std::string common = "fitness=excitable,by=exact,taps=fc1";
  at::Tensor inputs = candidates().slice(0, 0, 2);
  std::vector<std::size_t> of{0, 1};
  std::vector<PickedParent> all = parents();
  auto share = [&](const std::string& more) {
    auto fitness = make(common + more);
    auto work = fitness->begin(all);
    std::vector<double> found = work->of(inputs, of);
    // Every coalition of ten neurons, and both ends, for two seeds and two candidates.
    EXPECT_EQ(work->passes(), 4 * (1024 + 2));
    return found;
  };
  EXPECT_EQ(share(",lambda=-1000000"), (std::vector<double>{1, 1}));
  EXPECT_EQ(share(",lambda=1000000"), (std::vector<double>{0, 0}));
  EXPECT_EQ(share(",lambda=1,scale=max"), (std::vector<double>{0, 0}));
  for (std::size_t i = 0; i < 2; ++i) {
    const PickedParent& parent = all[of[i]];
    double mean = (loss(inputs[static_cast<std::int64_t>(i)], parent.label) - loss(parent.seed, parent.label)) / 10;
    EXPECT_GT(share(",lambda=" + std::to_string(mean - 1e-3))[i], 0);
    EXPECT_LT(share(",lambda=" + std::to_string(mean + 1e-3))[i], 1);
  }
}

TEST_F(FitnessTest, ASeedExcitesNothing) {
  std::vector<PickedParent> all = parents();
  auto fitness = make("fitness=excitable,by=(path:points=4,tolerance=0),lambda=0.000001,until=0.25");
  auto work = fitness->begin(all);
  EXPECT_EQ(work->of(at::stack({all[0].seed, all[1].seed}), {0, 1}), (std::vector<double>{0, 0}));
  EXPECT_GT(work->of(candidates(), {0, 0, 1, 1})[0], 0);
  EXPECT_EQ(fitness->enough(), 0.25);
}

TEST_F(FitnessTest, GainIsWhatNoneBeforeCovered) {
  auto fitness = make("fitness=gain,criterion=nc:threshold=0.5");
  std::vector<PickedParent> all = parents();
  auto work = fitness->begin(all);
  at::Tensor inputs = candidates();
  std::vector<double> first = work->of(inputs, {0, 0, 1, 1});
  Tracer tracer(*network(), network()->select_taps("default"), NeuronUnit::channel);
  // A candidate once more, and the seed, gain nothing; every parent has its own account.
  EXPECT_EQ(work->of(inputs, {0, 0, 1, 1}), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(work->of(at::stack({all[0].seed, all[1].seed}), {0, 1}), (std::vector<double>{0, 0}));
  double gained = 0;
  for (double gain : first) gained += gain;
  EXPECT_GT(gained, 0);
  EXPECT_LE(gained, 2 * static_cast<double>(tracer.layout().neurons));
  EXPECT_EQ(work->passes(), 2 + 4 + 4 + 2);
  EXPECT_THROW(make("fitness=gain,criterion=kmnc"), Error);
}

}  // namespace
}  // namespace galvani
