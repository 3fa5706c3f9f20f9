#include "generate/differential.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/data/dataset.h"
#include "generate/testing.h"

namespace galvani {
namespace {

using Start = Differential::Start;
using Climber = Differential::Climber;

class DifferentialTest : public ::testing::Test {
 protected:
  DifferentialTest() : seeds_(load_data("digits:test[0:24]").images), network_(testing::random_lenet()) {
    testing::save_relative(*network_, 0.3, folder_ / "b.onnx");
    other_ = Network::load(folder_ / "b.onnx");
  }

  std::unique_ptr<Generator> make(const std::string& spec) const {
    GeneratorContext context;
    context.seeds = seeds_;
    context.network = network_.get();
    return make_generator(Spec::parse(spec), context);
  }
  std::unique_ptr<Generator> deepxplore(const std::string& more) const {
    return make("deepxplore:with=" + (folder_ / "b.onnx").string() + "," + more);
  }
  std::vector<PickedParent> parents() const {
    std::vector<PickedParent> result;
    for (std::int64_t i = 0; i < seeds_.size(0); ++i) result.push_back({seeds_[i], seeds_[i], "", 0, i + 1, Rng(7)});
    return result;
  }
  static std::vector<Candidate> one_each(std::size_t parents) {
    std::vector<Candidate> wanted(parents);
    for (std::size_t i = 0; i < parents; ++i) wanted[i].parent = i;
    return wanted;
  }
  // Where all candidates end, `steps` steps on, with where they began.
  struct Climbed {
    std::vector<Start> starts;
    std::vector<Climber> climbers;
  };
  Climbed climbed(const Generator& generator, std::int64_t steps) const {
    const auto& differential = dynamic_cast<const Differential&>(generator);
    Climbed result{differential.starts(parents()), {}};
    result.climbers = differential.climb(parents(), result.starts, one_each(parents().size()), steps);
    return result;
  }
  static std::int64_t said(Network& network, const at::Tensor& input) {
    return network.run(input.unsqueeze(0)).logits.argmax(1).item<std::int64_t>();
  }
  static double probability(Network& network, const at::Tensor& input, std::int64_t label) {
    return network.run(input.unsqueeze(0)).logits.softmax(1)[0][label].item<double>();
  }

  TemporaryFolder folder_;
  at::Tensor seeds_;
  std::unique_ptr<Network> network_, other_;
};

TEST_F(DifferentialTest, AStepRaisesWhatIsClimbed) {
  // Short ones, without neurons, so that the formula can be worked out from the scores alone.
  auto explore = deepxplore("constraint=occl,size=28,lambda1=2,lambda2=0,step=1/255");
  int rises = 0;
  int all = 0;
  for (const Climber& climber : climbed(*explore, 1).climbers) {
    if (!climber.x.defined()) continue;
    auto value = [&](const at::Tensor& input) {
      return probability(*other_, input, climber.start->label) -
             2 * probability(*network_, input, climber.start->label);
    };
    rises += value(climber.x) > value(climber.start->input) ? 1 : 0;
    ++all;
  }
  EXPECT_GE(all, 12);
  EXPECT_EQ(rises, all);

  auto fuzz = make("dlfuzz:lambda=0,others=0.5,step=1/255,k=3");
  Climbed after = climbed(*fuzz, 1);
  for (const Climber& climber : after.climbers) {
    ASSERT_EQ(climber.terms[0].classes.size(), 4U);
    EXPECT_EQ(std::set<std::int64_t>(climber.terms[0].classes.begin(), climber.terms[0].classes.end()).size(), 4U);
    auto value = [&](const at::Tensor& input) {
      at::Tensor logits = network_->run(input.unsqueeze(0)).logits[0];
      double sum = -logits[climber.start->label].item<double>();
      for (std::size_t i = 1; i < 4; ++i) sum += 0.5 * logits[climber.terms[0].classes[i]].item<double>();
      return sum;
    };
    EXPECT_GT(value(climber.x), value(climber.start->input));
  }
}

TEST_F(DifferentialTest, NeuronsAreRaisedAlone) {
  auto generator = make("dlfuzz:k=0,lambda=1000,neurons=3,strategy=seldom,step=1/255,threshold=0.9");
  const auto& differential = dynamic_cast<const Differential&>(*generator);
  NeuronTable table(*network_, "default", seeds_, 0.9);
  Request request;
  request.taps = table.taps;
  std::int64_t most = *std::max_element(table.active.begin(), table.active.end());
  std::vector<Start> starts = differential.starts(parents());
  for (const Climber& climber : differential.climb(parents(), starts, one_each(8), 1)) {
    auto value = [&](const at::Tensor& input) {
      at::Tensor values = at::cat(network_->run(input.unsqueeze(0), request).taps, 1)[0];
      double sum = 0;
      for (std::int64_t neuron : climber.terms[0].neurons) sum += values[neuron].item<double>();
      return sum;
    };
    EXPECT_EQ(climber.terms[0].neurons.size(), 3U);
    for (std::int64_t neuron : climber.terms[0].neurons)
      EXPECT_LT(table.active[static_cast<std::size_t>(neuron)], most) << "not one of those that are active most often";
    EXPECT_GT(value(climber.x), value(climber.start->input));
  }
}

TEST_F(DifferentialTest, ConstraintsShapeTheChange) {
  for (const Climber& climber : climbed(*deepxplore("constraint=light"), 6).climbers) {
    if (!climber.x.defined()) continue;
    at::Tensor change = climber.x - climber.start->input.to(at::kFloat);
    EXPECT_LT((change.max() - change.min()).item<double>(), 1e-3) << "more than one number";
    EXPECT_GT(change.abs().max().item<double>(), 0);
  }
  std::set<std::pair<std::int64_t, std::int64_t>> places;
  for (const Climber& climber : climbed(*deepxplore("constraint=occl,size=7"), 6).climbers) {
    if (!climber.x.defined()) continue;
    at::Tensor change = climber.x - climber.start->input.to(at::kFloat);
    places.insert({climber.top, climber.left});
    change.narrow(1, climber.top, 7).narrow(2, climber.left, 7).zero_();
    EXPECT_EQ(change.abs().max().item<double>(), 0) << "beyond its rectangle";
  }
  EXPECT_GT(places.size(), 5U);
  bool darker = false;
  for (const Climber& climber : climbed(*deepxplore("constraint=blackout,square=5"), 6).climbers) {
    if (!climber.x.defined()) continue;
    at::Tensor change = climber.x - climber.start->input.to(at::kFloat);
    EXPECT_LE(change.max().item<double>(), 0) << "lighter";
    EXPECT_GE(climber.x.min().item<double>(), 0);
    darker = darker || change.min().item<double>() < -1;
  }
  EXPECT_TRUE(darker);
  for (const Climber& climber : climbed(*deepxplore("constraint=free"), 6).climbers) {
    if (!climber.x.defined()) continue;
    at::Tensor change = climber.x - climber.start->input.to(at::kFloat);
    EXPECT_LT(change.min().item<double>(), 0) << "both ways";
    EXPECT_GT(change.max().item<double>(), 0) << "both ways";
    EXPECT_GE(climber.x.min().item<double>(), 0);
    EXPECT_LE(climber.x.max().item<double>(), 255);
  }
}

TEST_F(DifferentialTest, WhatIsFoundDividesTheModels) {
  for (const char* lead : {"this", "random"}) {
    auto generator = deepxplore(fmt::format("lead={},step=40/255", lead));
    auto proposal = generator->begin(parents(), {6, false});
    Candidates made = proposal->next(1000);
    ASSERT_EQ(made.each.size(), 24U * 6);
    std::set<int> kinds;
    int found = 0;
    for (std::size_t i = 0; i < made.each.size(); ++i) {
      const Candidate& candidate = made.each[i];
      at::Tensor seed = seeds_[static_cast<std::int64_t>(candidate.parent)];
      bool alike = said(*network_, seed) == said(*other_, seed);
      // Where they differ from the start there is nothing to try.
      EXPECT_EQ(candidate.kind, alike ? static_cast<int>(candidate.slot % 3) : -1);
      EXPECT_FALSE(candidate.repeatable);
      if (!candidate.valid) continue;
      EXPECT_TRUE(alike);
      ++found;
      kinds.insert(candidate.kind);
      at::Tensor own = made.inputs[static_cast<std::int64_t>(i)];
      EXPECT_NE(said(*network_, own), said(*other_, own)) << proposal->provenance(i);
      std::map<std::string, double> figures;
      for (const auto& [name, value] : proposal->figures(i)) figures[name] = value;
      at::Tensor change = (own.to(at::kDouble) - seed.to(at::kDouble)) / 255;
      EXPECT_DOUBLE_EQ(figures.at("linf"), change.abs().max().item<double>());
      EXPECT_NEAR(figures.at("l2"), change.norm().item<double>(), 1e-9);
      EXPECT_TRUE(figures.at("steps") >= 1 && figures.at("steps") <= 50);
      EXPECT_TRUE(figures.at("differ") == 1 || figures.at("differ") == 2);
    }
    EXPECT_GT(found, 20) << lead;
    EXPECT_EQ(kinds.size(), 3U) << lead;
    EXPECT_GT(generator->passes(), 24 * 2);
  }
}

TEST_F(DifferentialTest, OneModelIsLedAwayFromItsOwnVerdict) {
  auto generator = make("dlfuzz");
  auto proposal = generator->begin(parents(), {3, false});
  Candidates made = proposal->next(1000);
  int found = 0;
  for (std::size_t i = 0; i < made.each.size(); ++i) {
    const Candidate& candidate = made.each[i];
    EXPECT_EQ(candidate.kind, 0);
    if (!candidate.valid) continue;
    at::Tensor own = made.inputs[static_cast<std::int64_t>(i)];
    at::Tensor seed = seeds_[static_cast<std::int64_t>(candidate.parent)];
    auto figures = proposal->figures(i);
    bool fooled = said(*network_, own) != said(*network_, seed);
    EXPECT_EQ(figures[1].second, fooled ? 1 : 0);
    at::Tensor change = own.to(at::kDouble) - seed.to(at::kDouble);
    EXPECT_TRUE(fooled || change.norm().item<double>() < 0.02 * seed.to(at::kDouble).norm().item<double>());
    found += fooled ? 1 : 0;
  }
  EXPECT_GT(found, 12);
  // A parent that is wrong already is not gone on from, but its seed.
  std::vector<PickedParent> again;
  for (std::size_t i = 0; i < made.each.size(); ++i) {
    if (!made.each[i].valid || proposal->figures(i)[1].second == 0) continue;
    PickedParent parent = parents()[made.each[i].parent];
    parent.input = made.inputs[static_cast<std::int64_t>(i)].clone();
    again.push_back(parent);
  }
  std::vector<Start> starts = dynamic_cast<const Differential&>(*generator).starts(again);
  for (std::size_t i = 0; i < starts.size(); ++i) EXPECT_TRUE(at::equal(starts[i].input, again[i].seed));
  // Steps so short that nothing is fooled are worth showing as long as they are near.
  auto near = make("dlfuzz:step=1/255000,steps=2,bound=0.5");
  for (const Candidate& candidate : near->begin(parents(), {1, false})->next(100).each) EXPECT_FALSE(candidate.valid);
  near = make("dlfuzz:step=2/255,steps=1,bound=0.5");
  int shown = 0;
  for (const Candidate& candidate : near->begin(parents(), {1, false})->next(100).each)
    shown += candidate.valid ? 1 : 0;
  EXPECT_EQ(shown, 24);
}

TEST_F(DifferentialTest, EveryStrategyChoosesItsOwnNeurons) {
  NeuronTable table(*network_, "default", seeds_, 0.5);
  std::vector<double> weights(static_cast<std::size_t>(table.size()), 0);
  weights[3] = 1;
  weights[7] = 1000;
  Rng rng(1);
  int first = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::int64_t> drawn = draw_by_weight(weights, 5, rng);
    ASSERT_EQ(drawn.size(), 2U) << "those of weight 0 are never drawn";
    first += drawn.front() == 7 ? 1 : 0;
  }
  EXPECT_GT(first, 190);
  for (const char* strategy : {"often", "seldom", "weights", "near", "(often,near)"}) {
    Climbed result = climbed(*make(fmt::format("dlfuzz:strategy={},neurons=4", strategy)), 1);
    std::size_t chosen = 0;
    for (const Climber& climber : result.climbers) {
      const Differential::Terms& terms = climber.terms[0];
      EXPECT_LE(terms.neurons.size(), 4U) << strategy;
      chosen += terms.neurons.size();
      for (std::size_t i = 0; i < terms.neurons.size(); ++i) {
        auto place = static_cast<std::size_t>(terms.neurons[i]);
        auto value = climber.start->activity[terms.neurons[i]].item<double>();
        if (strategy == std::string("often")) {
          EXPECT_GT(table.active[place], 0);
        }
        if (strategy == std::string("weights")) {
          EXPECT_GT(table.weight[place], 0);
        }
        if (strategy == std::string("near")) {
          EXPECT_EQ(terms.neuron_weights[i] > 0, value <= 0.5);
          EXPECT_LT(std::abs(value - 0.5), 0.25);
        }
      }
    }
    EXPECT_GT(chosen, result.climbers.size()) << strategy;
  }
}

TEST_F(DifferentialTest, FilesAndOptionsAreLookedAt) {
  auto refused = [&](const std::string& spec) {
    try {
      make(spec);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  std::string b = (folder_ / "b.onnx").string();
  auto says = [&](const std::string& spec, const std::string& words) {
    EXPECT_NE(refused(spec).find(words), std::string::npos) << spec << ": " << refused(spec);
  };
  says("deepxplore", "--with");
  says("deepxplore:with=" + (folder_ / "none.onnx").string(), "none.onnx");
  says("deepxplore:with=" + b + ",constraint=dark", "light, occl, blackout, free");
  says("deepxplore:with=" + b + ",constraint=(light,light)", "light, occl, blackout");
  says("dlfuzz:strategy=(often,rarely)", "often, seldom, weights, near");
  testing::random_lenet(1, 5)->save(folder_ / "five.onnx");
  says("deepxplore:with=" + (folder_ / "five.onnx").string(), "5 classes");
  Rng rng(1);
  Network::from_onnx(architectures().create(Spec::parse("lenet1"), {1, 32, 32, 10}, rng), "large", {})
      ->save(folder_ / "large.onnx");
  says("deepxplore:with=" + (folder_ / "large.onnx").string(), "1x32x32");

  std::string hash = deepxplore("lead=this")->files_sha256();
  EXPECT_EQ(hash.size(), 64U);
  write_file(folder_ / "b.onnx.toml", "range = [0, 2]\n");
  EXPECT_NE(deepxplore("lead=this")->files_sha256(), hash) << "what its card says is part of a model";
  EXPECT_EQ(make("dlfuzz")->files_sha256(), "");

  // Paths stand in the spec so that they lead to the files from any folder.
  std::string resolved = resolved_generator(Spec::parse("deepxplore:with=(b.onnx,c/../d.onnx)"));
  std::string here = std::filesystem::current_path().string();
  EXPECT_NE(resolved.find("with=(" + here + "/b.onnx," + here + "/d.onnx)"), std::string::npos) << resolved;
  EXPECT_EQ(resolved_generator(Spec::parse(resolved)), resolved);

  // Where lineages are followed only, files are read and nothing is run.
  GeneratorContext alone;
  alone.seeds = seeds_;
  auto follower = make_generator(Spec::parse("dlfuzz"), alone);
  EXPECT_THROW(follower->begin(parents(), {1, false}), Error);
  EXPECT_THROW(follower->make("dlfuzz", seeds_[0], seeds_[0]), Error);
}

}  // namespace
}  // namespace galvani
