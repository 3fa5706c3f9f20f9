#include "galvani/attribute/conductance.h"

#include <gtest/gtest.h>

#include "attribute/testing.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

at::Tensor published_input() {
  return at::tensor({0.F, 100.F, 0.F}).view({1, 3, 1, 1});
}

std::vector<int> every_tap(const Network& network) {
  return network.select_taps("all");
}

ConductanceOptions options_of(std::int64_t steps, const std::string& rule) {
  Spec spec{"x", {{"steps", std::to_string(steps)}, {"rule", rule}}};
  return ConductanceOptions::from(Options("x", ConductanceOptions::schema(), spec));
}

// Values that the authors of another implementation published for this network (docs/nsgen.md).
TEST(Conductance, PublishedExample) {
  for (std::int64_t micro_batch : {1, 7, 16, 500, 1000}) {
    auto network = testing::published_network(micro_batch);
    for (const char* rule : {"riemann", "trapezoid"}) {
      Conductance conductance(*network, every_tap(*network), options_of(500, rule));
      Conductances found = conductance(published_input(), at::tensor({std::int64_t{0}}));
      ASSERT_EQ(found.taps.size(), 4U);
      const std::vector<at::Tensor> wanted = {at::tensor({0.F, 390.F, 0.F}), at::tensor({90.F, 100.F, 100.F, 100.F}),
                                              at::tensor({90.F, 100.F, 100.F, 100.F}), at::tensor({390.F, 0.F})};
      for (std::size_t tap = 0; tap < wanted.size(); ++tap)
        EXPECT_TRUE(at::allclose(found.taps[tap][0], wanted[tap], 0, 0.11))
            << rule << ", micro-batch " << micro_batch << ", tap " << tap << ": " << found.taps[tap];
      EXPECT_NEAR(found.difference[0].item<double>(), 390, 1e-3);
    }
  }
}

// Over a layer that everything passes through, the parts add up to the whole.
TEST(Conductance, AddsUpToTheDifferenceOfTheScores) {
  auto network = testing::zoo_network("lenet5", {1, 28, 28});
  at::Tensor images = testing::random_images(*network, 6);
  at::Tensor targets = at::tensor(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  Conductance conductance(*network, network->select_taps("default"), options_of(200, "trapezoid"));
  Conductances found = conductance.full(images, targets);
  for (const at::Tensor& tap : found.taps) {
    at::Tensor sum = tap.flatten(1).sum(1);
    at::Tensor off = (sum - found.difference).abs() / found.difference.abs();
    EXPECT_LT(off.max().item<double>(), 0.01);
  }
}

TEST(Conductance, MeanOverSpaceIsTheMeanOfEveryScalar) {
  auto network = testing::zoo_network("lenet5", {1, 28, 28});
  at::Tensor images = testing::random_images(*network, 3);
  at::Tensor targets = at::tensor(std::vector<std::int64_t>{3, 1, 4});
  Conductance conductance(*network, network->select_taps("default"), options_of(10, "riemann"));
  Conductances means = conductance(images, targets);
  Conductances full = conductance.full(images, targets);
  for (std::size_t tap = 0; tap < means.taps.size(); ++tap) {
    at::Tensor all = full.taps[tap];
    at::Tensor expected = all.dim() > 2 ? all.flatten(2).mean(2) : all;
    EXPECT_TRUE(at::allclose(means.taps[tap], expected, 1e-4, 1e-6));
  }
  EXPECT_EQ(conductance.passes(), 2 * 3 * 10);
}

// Micro-batches that hold several paths, one, or a piece of one; together or alone; any number of workers.
TEST(Conductance, DoesNotDependOnHowPathsAreCut) {
  std::vector<at::Tensor> first;
  for (std::int64_t micro_batch : {4, 12, 30, 64}) {
    for (const char* rule : {"riemann", "trapezoid"}) {
      auto network = testing::zoo_network("lenet5", {1, 28, 28}, micro_batch);
      at::Tensor images = testing::random_images(*network, 5);
      at::Tensor targets = at::tensor(std::vector<std::int64_t>{3, 1, 4, 1, 5});
      Conductance conductance(*network, network->select_taps("default"), options_of(12, rule));
      Conductances together = conductance(images, targets);
      Conductances alone = conductance(images.narrow(0, 3, 1), targets.narrow(0, 3, 1));
      for (std::size_t tap = 0; tap < together.taps.size(); ++tap)
        EXPECT_TRUE(at::allclose(together.taps[tap].narrow(0, 3, 1), alone.taps[tap], 1e-3, 1e-6));
      if (std::string(rule) == "riemann") {
        if (first.empty()) first = together.taps;
        for (std::size_t tap = 0; tap < first.size(); ++tap)
          EXPECT_TRUE(at::allclose(together.taps[tap], first[tap], 1e-3, 1e-6)) << micro_batch;
      }
      set_workers(3);
      Conductances three = conductance(images, targets);
      set_workers(2);
      for (std::size_t tap = 0; tap < first.size(); ++tap) EXPECT_TRUE(at::equal(three.taps[tap], together.taps[tap]));
    }
  }
}

TEST(Conductance, ZeroIsWhatTheNetworkSeesAsZero) {
  auto network = testing::zoo_network("resnet20", {3, 32, 32});
  ModelCard card = network->card();
  card.preprocess.mean = {0.5, 0.4, 0.3};
  card.preprocess.deviation = {0.2, 0.25, 0.3};
  card.preprocess.bgr = true;
  network->set_card(card);
  Conductance conductance(*network, network->select_taps("default"));
  at::Tensor seen = card.preprocess.apply(conductance.baseline());
  EXPECT_LT(seen.abs().max().item<double>(), 1e-5);
  // Blue is first in the model, last in files.
  EXPECT_NEAR(conductance.baseline()[0][2][0][0].item<double>(), 0.5 * 255, 1e-3);
  ConductanceOptions black;
  black.baseline = ConductanceOptions::Baseline::black;
  EXPECT_EQ(Conductance(*network, {0}, black).baseline().abs().max().item<double>(), 0);
}

TEST(Conductance, RefusesWhatItCannotDo) {
  auto network = testing::published_network(16);
  Conductance conductance(*network, every_tap(*network));
  EXPECT_NE(testing::error_of([&] { conductance(published_input(), at::tensor({std::int64_t{2}})); }), "");
  EXPECT_NE(testing::error_of([&] { conductance(published_input(), at::tensor({0.F})); }), "");
  EXPECT_NE(testing::error_of([&] { Conductance(*network, {}); }), "");
}

TEST(EvenlyChosen, FromTheFirstToTheLast) {
  std::vector<int> taps;
  for (int i = 0; i < 13; ++i) taps.push_back(i);
  EXPECT_EQ(evenly_chosen(taps, 5), (std::vector<int>{0, 3, 6, 9, 12}));
  EXPECT_EQ(evenly_chosen(taps, 1), (std::vector<int>{12}));
  EXPECT_EQ(evenly_chosen(taps, 20), taps);
}

}  // namespace
}  // namespace galvani
