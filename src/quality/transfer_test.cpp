#include "galvani/quality/transfer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "galvani/data/dataset.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"

namespace galvani {
namespace {

std::unique_ptr<Network> random_lenet_of(std::uint64_t seed) {
  Rng rng(seed);
  Network::Options options;
  options.execution = {16, false};
  return Network::from_onnx(architectures().create(Spec::parse("lenet1"), {1, 28, 28, 10}, rng),
                            "net" + std::to_string(seed) + ".onnx", options);
}

TEST(Transfer, CountsWhatBreaksWhereTheOriginalIsRight) {
  auto a = random_lenet_of(1), b = random_lenet_of(2);
  Dataset originals = load_data("digits:test[0:60]");
  // Labels are what the first says, so that it gets every original right.
  originals.labels = predict(*a, originals.images).labels.contiguous();
  Dataset tests = originals;
  tests.images = originals.images.flip(3).contiguous();
  auto pairs = paired_tests(DataView(tests), DataView(originals));
  Transfer transfer = measure_transfer({{"flipped", a->info().sha256, pairs.get()}}, {a.get(), b.get()}, 0, 1);
  ASSERT_EQ(transfer.models, (std::vector<std::string>{"net1", "net2"}));
  const TransferCell& own = transfer.rows.at(0).cells.at(0);
  const TransferCell& other = transfer.rows[0].cells.at(1);
  EXPECT_TRUE(own.own);
  EXPECT_FALSE(other.own);
  EXPECT_EQ(own.tests, 60);
  EXPECT_EQ(own.right, 60);
  at::Tensor labels = originals.labels;
  at::Tensor wrong_a = predict(*a, tests.images).labels != labels;
  EXPECT_EQ(own.broken, wrong_a.sum().item<std::int64_t>());
  EXPECT_EQ(own.broken, own.wrong);
  at::Tensor right_b = predict(*b, originals.images).labels == labels;
  at::Tensor wrong_b = predict(*b, tests.images).labels != labels;
  EXPECT_EQ(other.right, right_b.sum().item<std::int64_t>());
  EXPECT_EQ(other.wrong, wrong_b.sum().item<std::int64_t>());
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 60; ++i) {
    if (right_b[i].item<bool>() && wrong_b[i].item<bool>()) ids.push_back(i);
  }
  EXPECT_EQ(other.broken_ids, ids);
  EXPECT_EQ(other.broken, right_b.logical_and(wrong_b).sum().item<std::int64_t>());
  Transfer some = measure_transfer({{"flipped", "", pairs.get()}}, {a.get()}, 20, 1);
  EXPECT_EQ(some.rows[0].cells[0].tests, 20);
  EXPECT_FALSE(some.rows[0].cells[0].own);
}

TEST(Transfer, MeansLeaveOutTheModelsOwn) {
  Transfer transfer;
  transfer.models = {"a", "b"};
  transfer.rows = {{"run a", {{10, 10, 10, 10, true}, {10, 8, 2, 4, false}}},
                   {"run b", {{10, 5, 3, 6, false}, {10, 0, 0, 10, false}}}};
  EXPECT_NEAR(transfer.mean(), (0.25 + 0.6) / 2, 1e-12);
  EXPECT_NEAR(transfer.highest(), 0.6, 1e-12);
  EXPECT_TRUE(std::isnan(transfer.rows[1].cells[1].rate()));
  EXPECT_EQ(figures_of(transfer).at(2).second, 5);
  std::string svg = transfer_svg(transfer);
  for (const char* text : {">100.0%<", ">25.0%<", ">60.0%<", ">-<", ">run a<", ">b<"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  EXPECT_TRUE(std::isnan(Transfer().mean()));
}

}  // namespace
}  // namespace galvani
