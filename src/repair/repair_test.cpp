#include "galvani/repair/repair.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <map>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"
#include "galvani/repair/adversarial.h"
#include "repair/loop.h"

namespace galvani {
namespace {

const RepairListener kSilent = [](const std::string&, const EpochReport&) {};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::vector<at::Tensor> weights_of(const Network& network) {
  std::vector<at::Tensor> all;
  for (const NamedParameter& p : network.parameters()) all.push_back(network.parameter(p.name));
  return all;
}

bool same_bits(const Network& a, const Network& b) {
  std::vector<at::Tensor> x = weights_of(a), y = weights_of(b);
  bool same = x.size() == y.size();
  for (std::size_t i = 0; same && i < x.size(); ++i) same = at::equal(x[i], y[i]);
  return same;
}

// A LeNet that was trained a little, and a campaign against it.
class RepairTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_folder = std::make_unique<TemporaryFolder>();
    Rng rng(5);
    Network::Options options;
    options.execution = {16, false};
    std::string bytes = architectures().create(Spec::parse("lenet5"), ArchitectureShape{1, 28, 28, 10}, rng);
    shared_network = Network::from_onnx(std::move(bytes), "lenet5", options);
    train_data = load_data("digits:train[0:1200]");
    clean_data = load_data("digits:test[0:200]");
    TrainOptions training;
    training.epochs = 4;
    train(*shared_network, train_data, clean_data, training, [](const EpochReport&) {});
    Tracer tracer(*shared_network, shared_network->select_taps("default"), NeuronUnit::channel);
    CampaignSettings settings;
    settings.guide = "random";
    settings.seeds = 40;
    settings.energy = 32;
    settings.batch = 4;
    Budget budget;
    budget.iterations = 80;
    Campaign(*shared_folder / "run", settings, {tracer, clean_data, nullptr, "", nullptr}).run(budget, {});
  }
  static void TearDownTestSuite() {
    shared_network.reset();
    shared_folder.reset();
  }
  void TearDown() override { set_workers(2); }

  static std::string run_folder() { return (*shared_folder / "run").string(); }
  static RepairData data() { return {train_data, clean_data, {read_tests(*shared_network, run_folder(), 3)}}; }
  static RepairOptions quick() {
    RepairOptions options;
    options.training.epochs = 2;
    options.training.optimizer = "sgd:lr=0.01";
    options.controls = {};
    options.clean_loss = 1;
    return options;
  }

  static std::unique_ptr<TemporaryFolder> shared_folder;
  static std::unique_ptr<Network> shared_network;
  static Dataset train_data, clean_data;
};
std::unique_ptr<TemporaryFolder> RepairTest::shared_folder;
std::unique_ptr<Network> RepairTest::shared_network;
Dataset RepairTest::train_data, RepairTest::clean_data;

TEST_F(RepairTest, ReadsFaultsWithTheirSeeds) {
  FoundTests tests = read_tests(*shared_network, run_folder(), 2);
  CampaignReader reader(run_folder());
  ASSERT_GT(tests.size(), 5);
  EXPECT_GT(tests.left_out, 0);
  std::map<std::string, int> of_seed;
  std::set<std::string> known;
  for (const SeedRecord& seed : reader.seeds()) known.insert(pixels_of(reader.image(seed.id)));
  for (const std::string& seed : tests.seeds) {
    EXPECT_LE(++of_seed[seed], 2);
    EXPECT_EQ(known.count(seed), 1U);
  }
  // All of them are wrong, by their labels.
  EXPECT_EQ(evaluate(*shared_network, tests.images).correct, 0);
  for (double change : tests.changes) EXPECT_GT(change, 0);
}

TEST_F(RepairTest, SeedsAreOnOneSide) {
  FoundTests some = read_tests(*shared_network, run_folder(), 1), more = read_tests(*shared_network, run_folder(), 3);
  std::set<std::string> held = hold_out_seeds({some, more}, 0.3, 1);
  EXPECT_EQ(held, hold_out_seeds({more, some}, 0.3, 1));
  EXPECT_NE(held, hold_out_seeds({some, more}, 0.3, 2));
  EXPECT_EQ(static_cast<std::int64_t>(held.size()), std::llround(0.3 * static_cast<double>(more.seed_count())));
  FoundTests in = more.subset(rows_of_seeds(more, held, true)), out = some.subset(rows_of_seeds(some, held, false));
  for (const std::string& seed : in.seeds) EXPECT_EQ(held.count(seed), 1U);
  for (const std::string& seed : out.seeds) EXPECT_EQ(held.count(seed), 0U);
  FoundTests one = some.subset({0});
  EXPECT_NE(error_of([&] { hold_out_seeds({one}, 0.3, 1); }).find("one seed"), std::string::npos);
}

TEST_F(RepairTest, MendsHeldOutTestsAndTheControlDoesNot) {
  RepairOptions options = quick();
  options.training.epochs = 15;
  options.training.optimizer = "sgd:lr=0.02";
  options.controls = {"clean", "noise"};
  options.attacks = "fgsm:eps=0.05";
  options.attacked = 50;
  std::string before = shared_network->identity();
  RepairResult result = repair(*shared_network, data(), options, kSilent);
  EXPECT_EQ(shared_network->identity(), before);
  EXPECT_EQ(result.networks, (std::vector<std::string>{"before", "control clean", "control noise", "after"}));
  EXPECT_EQ(result.accuracy(SetKind::held_out, 0), 0);
  EXPECT_GT(result.accuracy(SetKind::held_out, 3), 0.3);
  EXPECT_GT(result.accuracy(SetKind::held_out, 3), result.accuracy(SetKind::held_out, 1) + 0.1);
  EXPECT_EQ(result.accuracy(SetKind::clean, 3), evaluate(*result.network, result.clean).accuracy);
  // Seeds are images of the clean data, which those of tests in training are no more.
  EXPECT_EQ(result.clean_left_out, result.trained_seeds);
  EXPECT_EQ(result.clean.size() + result.clean_left_out, clean_data.size());
  Figures figures = figures_of(result, options);
  EXPECT_EQ(names_of(figures), repair_figure_names(options));
  std::map<std::string, double> by_name(figures.begin(), figures.end());
  double lost = (by_name["broken"] - by_name["mended"]) / static_cast<double>(result.clean.size());
  EXPECT_NEAR(by_name["clean-lost"], lost, 1e-9);
  EXPECT_LT(by_name["fgsm-before"], by_name["clean-before"]);
}

TEST_F(RepairTest, BlendsBackToKeepCleanAccuracy) {
  RepairOptions options = quick();
  options.training.epochs = 15;
  options.training.optimizer = "sgd:lr=0.05";
  options.mix = 0.9;
  options.training.frozen = "conv1";
  RepairResult free = repair(*shared_network, data(), options, kSilent);
  options.clean_loss = 0;
  RepairResult kept = repair(*shared_network, data(), options, kSilent);
  ASSERT_LT(kept.blends.back(), 1);
  EXPECT_EQ(kept.blended_on, free.clean.size() / 5);
  EXPECT_EQ(kept.clean.size(), free.clean.size() - kept.blended_on);
  for (std::int64_t row : {0, 30})
    EXPECT_TRUE(at::equal(kept.clean.images[row], clean_data.images[kept.clean_items[static_cast<std::size_t>(row)]]));
  for (const NamedParameter& p : shared_network->parameters()) {
    at::Tensor from = shared_network->parameter(p.name), to = free.network->parameter(p.name);
    at::Tensor wanted = from * (1 - kept.blends.back()) + to * kept.blends.back();
    EXPECT_TRUE(at::allclose(kept.network->parameter(p.name), wanted, 1e-5, 1e-6)) << p.name;
    EXPECT_TRUE(p.name.rfind("conv1", 0) != 0 || at::equal(kept.network->parameter(p.name), from));
  }
}

TEST_F(RepairTest, SameWeightsForAnyNumberOfThreads) {
  for (const char* adversarial : {"", "pgd:eps=0.1,steps=2"}) {
    std::unique_ptr<Network> first;
    for (int threads : {1, 2}) {
      set_workers(threads);
      RepairOptions options = quick();
      options.adversarial = adversarial;
      RepairResult result = repair(*shared_network, data(), options, kSilent);
      if (!first)
        first = std::move(result.network);
      else
        EXPECT_TRUE(same_bits(*first, *result.network)) << adversarial;
    }
    EXPECT_FALSE(same_bits(*first, *shared_network));
  }
}

TEST_F(RepairTest, FrozenLayersStay) {
  RepairOptions options = quick();
  options.training.frozen = "conv*";
  RepairResult result = repair(*shared_network, data(), options, kSilent);
  std::int64_t frozen = 0, moved = 0;
  for (const NamedParameter& p : shared_network->parameters()) {
    bool same = at::equal(shared_network->parameter(p.name), result.network->parameter(p.name));
    EXPECT_EQ(same, p.name.rfind("conv", 0) == 0) << p.name;
    (same ? frozen : moved) += 1;
  }
  EXPECT_GT(frozen, 0);
  EXPECT_GT(moved, 0);
  options.training.frozen = "nothing";
  EXPECT_NE(error_of([&] { repair(*shared_network, data(), options, kSilent); }).find("to freeze; it has conv"),
            std::string::npos);
  options.training.frozen = "*";
  EXPECT_NE(error_of([&] { repair(*shared_network, data(), options, kSilent); }).find("freezes everything"),
            std::string::npos);
}

// Interrupted in each of its trainings, one after the other.
TEST_F(RepairTest, ResumedEqualsUndisturbed) {
  for (std::int64_t parts : {0, 2}) {
    RepairOptions options = quick();
    options.controls = {"clean"};
    options.loop.parts = parts;
    options.loop.keep = "all";
    RepairData all = data();
    RepairResult whole = repair(*shared_network, all, options, kSilent);
    TemporaryFolder folder;
    options.training.checkpoint = folder / "c";
    install_interrupt_handler();
    std::vector<std::string> stages = parts == 0 ? std::vector<std::string>{"repair", "control clean"}
                                                 : std::vector<std::string>{"round 2", "control clean, round 1"};
    for (const std::string& stage : stages) {
      EXPECT_THROW(repair(*shared_network, all, options,
                          [&](const std::string& now, const EpochReport& r) {
                            if (now == stage && r.epoch == 1) std::raise(SIGINT);
                          }),
                   Error)
          << stage;
      clear_interrupt();
    }
    RepairResult resumed = repair(*shared_network, all, options, kSilent);
    EXPECT_TRUE(same_bits(*whole.network, *resumed.network));
    EXPECT_EQ(whole.accuracy(SetKind::held_out, 1), resumed.accuracy(SetKind::held_out, 1));
    std::set<std::filesystem::path> named, found;
    for (const auto& path : repair_checkpoints(options.training.checkpoint, options)) named.insert(path);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) found.insert(entry.path());
    EXPECT_EQ(named, found);
  }
}

TEST_F(RepairTest, LoopKeepsWhatItSays) {
  RepairOptions options = quick();
  options.loop.parts = 2;
  options.loop.criterion = "kmnc:k=100";
  options.loop.per_image = 4;
  std::int64_t improving = 0;
  for (const char* keep : {"coverage-improving", "coverage-remaining", "all"}) {
    options.loop.keep = keep;
    options.loop.most = 0;
    LoopFind find = find_round(*shared_network, train_data, {}, 1, options);
    const RepairRound& round = find.round;
    EXPECT_GT(round.wrong, round.improving);
    EXPECT_LE(round.candidates, 4 * 600);
    ASSERT_GT(round.kept, 0);
    EXPECT_EQ(find.kept.size(), round.kept);
    EXPECT_EQ(evaluate(*shared_network, find.kept.images).correct, 0);
    if (std::string(keep) == "coverage-improving") {
      improving = round.improving;
      EXPECT_GT(improving, 0);
      EXPECT_EQ(round.kept, improving);
      EXPECT_GT(round.coverage_after, round.coverage_before);
      // What was kept is covered from then on.
      EXPECT_EQ(find_round(*shared_network, train_data, find.kept, 1, options).round.improving, 0);
    } else if (std::string(keep) == "coverage-remaining") {
      EXPECT_EQ(round.kept, round.wrong - improving);
      EXPECT_EQ(round.coverage_after, round.coverage_before);
    } else {
      EXPECT_EQ(round.kept, round.wrong);
    }
    options.loop.most = 1;
    EXPECT_EQ(find_round(*shared_network, train_data, {}, 1, options).round.kept, 1);
  }
  options.loop.criterion = "nlc";
  EXPECT_NE(error_of([&] { find_round(*shared_network, train_data, {}, 1, options); }).find("not a set"),
            std::string::npos);
}

// No training input covers a corner of the range of all of them.
TEST_F(RepairTest, RangesOfTheLoopAreOfAllTrainingData) {
  ASSERT_GT(train_data.size(), 1000);
  RepairOptions options = quick();
  options.loop.parts = 2;
  options.loop.criterion = "nbc";
  options.loop.unit = NeuronUnit::unit;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    options.training.seed = seed;
    EXPECT_EQ(find_round(*shared_network, train_data, {}, 1, options).round.coverage_before, 0);
  }
}

TEST_F(RepairTest, BothWaysOfTheLoopAreBlendedAlike) {
  RepairOptions options = quick();
  options.clean_loss = RepairOptions().clean_loss;
  options.controls = {"clean"};
  EXPECT_EQ(options.allowed_clean_loss(), 0.01);
  options.loop.parts = 2;
  EXPECT_EQ(options.allowed_clean_loss(), 1);
  options.training.optimizer = "sgd:lr=0.2";  // so that clean accuracy is lost
  RepairData without = data();
  without.tests.clear();
  for (const char* keep : {"coverage-improving", "coverage-remaining"}) {
    options.loop.keep = keep;
    options.loop.criterion = "kmnc:k=100";
    RepairResult result = repair(*shared_network, without, options, kSilent);
    EXPECT_EQ(result.blended_on, 0) << keep;
    for (std::size_t i = 1; i < result.blends.size(); ++i) EXPECT_EQ(result.blends[i], 1) << keep;
    EXPECT_EQ(result.clean.size(), clean_data.size()) << keep;
  }
  options.loop = {};
  options.adversarial = "pgd:eps=0.1";
  EXPECT_EQ(options.allowed_clean_loss(), 1);
  options.clean_loss = 0.2;
  EXPECT_EQ(options.allowed_clean_loss(), 0.2);
}

TEST_F(RepairTest, AdversaryStaysInItsBallAndHurts) {
  auto network = shared_network->clone();
  Perturbation pgd = make_adversary(Spec::parse("pgd:eps=10/255,steps=5"), *network);
  Trainer trainer({network.get()}, {{"network", {{0}}, "sgd"}}, {32, 32, 1});
  Trainer::Step step;
  step.groups = {0};
  for (std::int64_t i = 0; i < 32; ++i) step.rows.push_back(i);
  const Preprocess& preprocess = network->card().preprocess;
  std::vector<double> losses = trainer.step(step, [&](Slot& slot) {
    at::Tensor images = train_data.images.narrow(0, 0, 32), labels = train_data.labels.narrow(0, 0, 32);
    at::Tensor changed = pgd.change(slot, images, labels);
    at::Tensor far = (changed - images.to(at::kFloat)).abs().max();
    EXPECT_LE(far.item<float>(), 10.0001F);
    EXPECT_GE(far.item<float>(), 9.9F);
    EXPECT_GE(changed.min().item<float>(), 0);
    EXPECT_LE(changed.max().item<float>(), 255);
    at::Tensor plain = at::cross_entropy_loss(slot.forward(0, preprocess.apply(images))[0], labels);
    at::Tensor hard = at::cross_entropy_loss(slot.forward(0, preprocess.apply(changed))[0], labels);
    return SlotLoss{plain, {plain.item<double>(), hard.item<double>()}};
  });
  EXPECT_GT(losses[1], losses[0] * 1.2);
  EXPECT_NE(error_of([&] { make_adversary(Spec::parse("pgd:eps=2"), *network); }), "");
}

}  // namespace
}  // namespace galvani
