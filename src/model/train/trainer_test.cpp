#include "galvani/model/trainer.h"

#include <gtest/gtest.h>
#include <torch/script.h>

#include <csignal>

#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

using onnx::TestGraph;
using testing::error_of;

Network::Options for_training() {
  Network::Options options;
  options.execution = {8, false};
  options.any_output = true;
  return options;
}

// 1x4x4 → 1x4x4: convolution, batch norm, dropout, convolution.
std::unique_ptr<Network> small_generator(std::uint64_t seed) {
  at::manual_seed(seed);
  TestGraph graph;
  graph.input("x", {-1, 1, 4, 4});
  std::vector<std::int64_t> same = {1, 1, 1, 1};
  graph.weight("conv1.weight", at::randn({3, 1, 3, 3}) * 0.4);
  TestGraph::set(graph.node("Conv", {"x", "conv1.weight"}, {"a"}), "pads", same);
  graph.weight("bn.weight", at::ones({3}));
  graph.weight("bn.bias", at::zeros({3}));
  graph.weight("bn.mean", at::zeros({3}));
  graph.weight("bn.variance", at::ones({3}));
  graph.node("BatchNormalization", {"a", "bn.weight", "bn.bias", "bn.mean", "bn.variance"}, {"b"});
  graph.node("Relu", {"b"}, {"c"});
  graph.weight("ratio", at::full({}, 0.3));
  graph.node("Dropout", {"c", "ratio"}, {"d"});
  graph.weight("conv2.weight", at::randn({1, 3, 3, 3}) * 0.4);
  TestGraph::set(graph.node("Conv", {"d", "conv2.weight"}, {"y"}), "pads", same);
  graph.output("y");
  return Network::from_onnx(graph.bytes(), "generator", for_training());
}

// 1x4x4 → patches 1x2x2.
std::unique_ptr<Network> small_discriminator(std::uint64_t seed) {
  at::manual_seed(seed);
  TestGraph graph;
  graph.input("x", {-1, 1, 4, 4});
  graph.weight("conv.weight", at::randn({1, 1, 3, 3}) * 0.4);
  graph.node("Conv", {"x", "conv.weight"}, {"y"});
  graph.output("y");
  return Network::from_onnx(graph.bytes(), "discriminator", for_training());
}

// y = w · x + b for two features.
std::unique_ptr<Network> linear() {
  TestGraph graph;
  graph.input("x", {-1, 1, 1, 2});
  graph.node("Flatten", {"x"}, {"f"});
  graph.weight("w", at::tensor({1.0F, -2.0F}).view({2, 1}));
  graph.weight("b", at::zeros({1}));
  graph.node("MatMul", {"f", "w"}, {"m"});
  graph.node("Add", {"m", "b"}, {"y"});
  graph.output("y");
  return Network::from_onnx(graph.bytes(), "linear", for_training());
}

TEST(Trainer, OneStepByHand) {
  auto network = linear();
  Trainer trainer({network.get()}, {{"all", {{0}}, "sgd:lr=0.1,momentum=0,weight_decay=0,nesterov=false"}}, {4, 2, 0});
  at::Tensor x = at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).view({3, 1, 1, 2});
  // The mean of (y - 1)² over three rows in two slots.
  auto loss = [&](Slot& slot) -> SlotLoss {
    at::Tensor rows = at::tensor(slot.rows(), at::kLong);
    at::Tensor error = (slot.forward(0, x.index_select(0, rows))[0] - 1).square().sum();
    return {error / static_cast<double>(slot.batch()), {error.item<double>(), static_cast<double>(rows.size(0))}};
  };
  Trainer::Step step;
  step.rows = {0, 1, 2};
  step.groups = {0};
  step.rate = 0.5;
  std::vector<double> figures = trainer.step(step, loss);
  // y = 1·x0 - 2·x1 = -3, -5, -7; errors -4, -6, -8.
  EXPECT_NEAR(figures.at(0), 16 + 36 + 64, 1e-4);
  EXPECT_EQ(figures.at(1), 3);
  at::Tensor w = network->parameter("w").flatten();
  EXPECT_NEAR(w[0].item<double>(), 1 - 0.05 * (2.0 / 3) * (-4 * 1 - 6 * 3 - 8 * 5), 1e-5);
  EXPECT_NEAR(w[1].item<double>(), -2 - 0.05 * (2.0 / 3) * (-4 * 2 - 6 * 4 - 8 * 6), 1e-5);
  EXPECT_NEAR(network->parameter("b").item<double>(), -0.05 * (2.0 / 3) * -18, 1e-5);
  EXPECT_EQ(trainer.state().updates, (std::vector<std::int64_t>{1}));
  EXPECT_NE(network->identity(), network->info().sha256);
}

TEST(Trainer, GroupsChangeWhatTheyNameAndNothingElse) {
  auto network = small_generator(1);
  auto other = small_discriminator(2);
  std::string before = other->identity();
  at::Tensor first = network->parameter("conv1.weight");
  at::Tensor last = network->parameter("conv2.weight");
  {
    Trainer trainer({network.get(), other.get()},
                    {{"head", {{0, "conv2.*,fc*"}}, "sgd:lr=0.1"}, {"critic", {{1}}, "adam:lr=0.1"}}, {8, 4, 0});
    Trainer::Step step;
    step.rows = {0, 1, 2, 3, 4, 5};
    step.groups = {0};
    trainer.step(step, [](Slot& slot) -> SlotLoss {
      auto n = static_cast<std::int64_t>(slot.rows().size());
      at::Tensor y = slot.forward(0, at::ones({n, 1, 4, 4}))[0];
      return {slot.forward(1, y)[0].square().sum(), {}};
    });
    EXPECT_EQ(trainer.state().updates, (std::vector<std::int64_t>{1, 0}));
  }
  EXPECT_TRUE(at::equal(network->parameter("conv1.weight"), first));
  EXPECT_FALSE(at::equal(network->parameter("conv2.weight"), last));
  EXPECT_EQ(other->identity(), before);
  EXPECT_NE(error_of([&] {
              Trainer({network.get()}, {{"x", {{0, "conv9*"}}}}, {});
            }).find("'conv9*'"),
            std::string::npos);
}

TEST(Trainer, DivergenceChangesNothing) {
  auto network = linear();
  std::string before = network->identity();
  Trainer trainer({network.get()}, {{"all", {{0}}, "adam"}}, {});
  Trainer::Step step;
  step.rows = {0};
  step.groups = {0};
  auto loss = [](Slot& slot) -> SlotLoss {
    return {slot.forward(0, at::ones({1, 1, 1, 2}))[0].sum() * std::nan(""), {}};
  };
  EXPECT_NE(error_of([&] { trainer.step(step, loss); }).find("adam:lr"), std::string::npos);
  EXPECT_EQ(network->identity(), before);
}

// Two generators and two discriminators that learn from each other, as in a CycleGAN.
struct Duel {
  std::unique_ptr<Network> p = small_generator(1), q = small_generator(2);
  std::unique_ptr<Network> dx = small_discriminator(3), dy = small_discriminator(4);
  at::Tensor x, y;

  Duel() {
    at::manual_seed(9);
    x = at::rand({20, 1, 4, 4});
    y = at::rand({14, 1, 4, 4}) * 0.5 + 0.5;
  }

  std::vector<at::Tensor> weights() const {
    std::vector<at::Tensor> all;
    for (const Network* network : {p.get(), q.get(), dx.get(), dy.get()}) {
      for (const NamedParameter& parameter : network->parameters()) all.push_back(network->parameter(parameter.name));
    }
    return all;
  }

  bool train(const std::filesystem::path& checkpoint, const std::function<void(std::int64_t)>& after_step) {
    Trainer trainer({p.get(), q.get(), dx.get(), dy.get()},
                    {{"generators", {{0}, {1}}, "adam:lr=0.01,beta1=0.5"},
                     {"discriminators", {{2}, {3}}, "adam:lr=0.01,beta1=0.5"}},
                    {6, 3, 5});
    ShuffledRows of_x(20, 6, trainer.rng().derive("x"));
    ShuffledRows of_y(14, 6, trainer.rng().derive("y"));
    TrainLoop loop;
    loop.epochs = 2;
    loop.rows = 14;
    loop.batch = 6;
    loop.checkpoint = checkpoint;
    loop.settings = "lambda = 10\n";
    auto share = [](const at::Tensor& from, const std::vector<std::int64_t>& rows, const Slot& slot) {
      std::vector<std::int64_t> own;
      for (std::int64_t row : slot.rows()) own.push_back(rows[static_cast<std::size_t>(row)]);
      return from.index_select(0, at::tensor(own, at::kLong));
    };
    loop.step = [&] {
      const TrainState& state = trainer.state();
      std::vector<std::int64_t> rows_x = of_x.rows(state.epoch, state.step);
      std::vector<std::int64_t> rows_y = of_y.rows(state.epoch, state.step);
      Trainer::Step step;
      for (std::size_t i = 0; i < std::min(rows_x.size(), rows_y.size()); ++i)
        step.rows.push_back(static_cast<std::int64_t>(i));
      step.groups = {0};
      std::vector<double> figures = trainer.step(step, [&](Slot& slot) -> SlotLoss {
        at::Tensor a = share(x, rows_x, slot);
        at::Tensor b = share(y, rows_y, slot);
        at::Tensor to_y = slot.forward(0, a)[0];
        at::Tensor to_x = slot.forward(1, b)[0];
        at::Tensor adversarial =
            (slot.forward(3, to_y)[0] - 1).square().sum() + (slot.forward(2, to_x)[0] - 1).square().sum();
        at::Tensor cycle = (slot.forward(1, to_y)[0] - a).abs().sum() + (slot.forward(0, to_x)[0] - b).abs().sum();
        return {(adversarial + cycle * 10) / static_cast<double>(slot.batch()), {cycle.item<double>()}};
      });
      step.groups = {1};
      step.phase = 1;
      trainer.step(step, [&](Slot& slot) -> SlotLoss {
        at::Tensor a = share(x, rows_x, slot);
        at::Tensor b = share(y, rows_y, slot);
        at::Tensor fake_y = slot.forward(0, a)[0].detach();
        at::Tensor fake_x = slot.forward(1, b)[0].detach();
        at::Tensor loss = (slot.forward(3, b)[0] - 1).square().sum() + slot.forward(3, fake_y)[0].square().sum() +
                          (slot.forward(2, a)[0] - 1).square().sum() + slot.forward(2, fake_x)[0].square().sum();
        return {loss / static_cast<double>(slot.batch()), {}};
      });
      after_step(state.epoch * loop.steps() + state.step);
      return figures;
    };
    return trainer.run(loop);
  }
};

bool equal_lists(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = at::equal(a[i], b[i]);
  return same;
}

TEST(Trainer, SeveralNetworksGiveTheSameBitsOnAnyNumberOfThreads) {
  std::vector<at::Tensor> start = Duel().weights();
  std::vector<at::Tensor> reference;
  for (int n : {1, 2, 4}) {
    set_workers(n);
    Duel duel;
    int steps = 0;
    EXPECT_FALSE(duel.train("", [&](std::int64_t) { steps += 1; }));
    EXPECT_EQ(steps, 6);
    if (reference.empty()) reference = duel.weights();
    EXPECT_TRUE(equal_lists(duel.weights(), reference)) << n;
  }
  for (std::size_t i = 0; i < start.size(); ++i) {
    // Everything learned but the dropout's ratio, which is a constant.
    EXPECT_EQ(at::equal(start[i], reference[i]), start[i].dim() == 0) << i;
  }
}

TEST(Trainer, SeveralNetworksGoOnFromACheckpoint) {
  Duel whole;
  whole.train("", [](std::int64_t) {});
  TemporaryFolder folder;
  std::filesystem::path checkpoint = folder / "duel.checkpoint";
  install_interrupt_handler();
  for (std::int64_t at_step : {1, 4}) {
    Duel broken;
    EXPECT_THROW(broken.train(checkpoint,
                              [&](std::int64_t step) {
                                if (step == at_step) std::raise(SIGINT);
                              }),
                 Error);
    clear_interrupt();
  }
  Duel resumed;
  EXPECT_TRUE(resumed.train(checkpoint, [](std::int64_t step) { EXPECT_GT(step, 4); }));
  EXPECT_TRUE(equal_lists(whole.weights(), resumed.weights()));
}

TEST(Trainer, ShuffledRowsCoverEveryEpoch) {
  ShuffledRows rows(10, 4, Rng(1));
  EXPECT_EQ(rows.steps(), 3);
  std::vector<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int64_t> all;
    for (std::int64_t step = 0; step < 3; ++step) {
      for (std::int64_t row : rows.rows(epoch, step)) all.push_back(row);
    }
    orders.push_back(all);
    std::sort(all.begin(), all.end());
    for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(all.at(static_cast<std::size_t>(i)), i);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_EQ(ShuffledRows(10, 4, Rng(1)).rows(1, 0),
            (std::vector<std::int64_t>(orders[1].begin(), orders[1].begin() + 4)));
}

TEST(Trainer, MixedRowsKeepTheirShare) {
  MixedRows rows(100, 12, 0.3, 10, Rng(3));
  EXPECT_EQ(rows.size(), 40);
  std::vector<int> shown(112);
  for (std::int64_t epoch = 0; epoch < 25; ++epoch) {
    std::vector<int> of_epoch(112);
    for (std::int64_t step = 0; step < rows.steps(); ++step) {
      std::vector<std::int64_t> batch = rows.rows(epoch, step);
      EXPECT_EQ(batch, rows.rows(epoch, step));
      EXPECT_EQ(std::count_if(batch.begin(), batch.end(), [](std::int64_t row) { return row >= 100; }), 3);
      for (std::int64_t row : batch) of_epoch[static_cast<std::size_t>(row)] += 1;
    }
    for (std::size_t i = 0; i < 112; ++i) {
      EXPECT_TRUE(i < 100 || of_epoch[i] == 1) << i;
      shown[i] += of_epoch[i];
    }
  }
  // 25 epochs of 28 rows are seven passes over the first part.
  EXPECT_TRUE(std::all_of(shown.begin(), shown.begin() + 100, [](int n) { return n == 7; }));
}

TEST(Trainer, InputGradientsLeaveStatisticsAlone) {
  auto network = testing::zoo_network("resnet20:width=4");
  Trainer trainer({network.get()}, {{"network", {{0}}, "sgd:lr=0"}}, {8, 8, 1});
  at::Tensor input = at::rand({8, 3, 32, 32});
  auto after_step = [&](int probes) {
    std::vector<at::Tensor> start;
    for (const at::Tensor& t : trainer.weights()) start.push_back(t.detach().clone());
    trainer.step({{0, 1, 2, 3, 4, 5, 6, 7}, {0}}, [&](Slot& slot) {
      auto number = [](const at::Tensor& logits) { return logits.select(1, 0).sum(); };
      for (int i = 0; i < probes; ++i) EXPECT_GT(slot.input_gradient(0, input, number).abs().sum().item<float>(), 0);
      return SlotLoss{slot.forward(0, input)[0].sum(), {}};
    });
    std::vector<at::Tensor> end;
    for (const at::Tensor& t : trainer.weights()) end.push_back(t.detach().clone());
    trainer.set_weights(start);
    return end;
  };
  std::vector<at::Tensor> without = after_step(0), with = after_step(3);
  for (std::size_t i = 0; i < without.size(); ++i) EXPECT_TRUE(at::equal(without[i], with[i])) << i;
}

TEST(Trainer, WithoutBatchStatisticsATrainedNetworkIsTheOneThatRuns) {
  auto network = testing::zoo_network("resnet20:width=4");
  at::Tensor images = testing::random_images(*network, 8);
  at::Tensor logits = network->run(images).logits;
  Trainer trainer({network.get()}, {{"network", {{0}}, "sgd:lr=0.01"}}, {8, 8, 1, /*batch_statistics=*/false});
  std::vector<at::Tensor> before;
  for (const at::Tensor& t : trainer.weights()) before.push_back(t.detach().clone());
  trainer.step({{0, 1, 2, 3, 4, 5, 6, 7}, {0}}, [&](Slot& slot) {
    at::Tensor said = slot.forward(0, network->card().preprocess.apply(images))[0];
    EXPECT_TRUE(at::allclose(said, logits, 1e-4, 1e-4));
    return SlotLoss{said.square().sum(), {}};
  });
  std::size_t changed = 0, parameters = 0;
  for (const NamedParameter& p : network->parameters()) parameters += p.trainable ? 1 : 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    bool same = at::equal(before[i], trainer.weights()[i]);
    EXPECT_TRUE(same || i < parameters) << i;
    changed += same ? 0 : 1;
  }
  EXPECT_GT(changed, parameters / 2);
}

}  // namespace
}  // namespace galvani
