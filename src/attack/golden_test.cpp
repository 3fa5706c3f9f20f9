// Attacks step by step, on networks of one pixel, where every step can be worked out with pencil and paper.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attack/steps.h"
#include "attack/testing.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

using testing::attacked;
using testing::LinearCase;
using testing::scripted_network;
using testing::task_of;

constexpr double kStart = 128;
constexpr double kEye = 2.39;  // what is less far from a goal of .1 stays so when it is rounded

AttackTask one_pixel() {
  return task_of(at::full({1, 1, 1, 1}, kStart, at::kByte), at::zeros({1}, at::kLong));
}

TEST(AttackSteps, ValuesWithoutSlopeStayWhereTheyAre) {
  LinearCase linear(2, 1);
  AttackTask task = task_of(linear.images, linear.labels);
  for (const char* spec : {"fgsm:eps=20/255", "fgsm:norm=l2,eps=20/255"}) {
    auto attack = make_attack(Spec::parse(spec));
    Search search(*linear.network, *attack, task, at::zeros({1}, at::kLong),
                  predict(*linear.network, linear.images).logits);
    at::Tensor gradient = at::zeros_like(search.originals());
    gradient.flatten()[1] = 3;
    gradient.flatten()[2] = -4;
    at::Tensor x = search.originals().clone();
    ascend(search, x.data_ptr<float>(), gradient.data_ptr<float>(), 10, 0);
    at::Tensor moved = (x - search.originals()).flatten();
    bool l2 = attack->norm() == Norm::l2;
    EXPECT_NEAR(moved[1].item<double>(), l2 ? 6 : 10, 1e-4) << spec;
    EXPECT_NEAR(moved[2].item<double>(), l2 ? -8 : -10, 1e-4) << spec;
    EXPECT_EQ(moved.count_nonzero().item<std::int64_t>(), 2) << spec;
  }
}

// A network of one pixel that is wrong only where the pixel is within 2.39 of `goal`.
std::unique_ptr<Network> needle(double goal) {
  return scripted_network(
      "  far = (x.flatten(1) * 255 - self.goal).abs() / 16\n"
      "  return torch.cat([far, torch.zeros_like(far) + 2.39 / 16], 1)\n",
      {{"goal", at::full({1}, goal)}}, {1, 1, 1});
}

// Algorithm 1 of Croce and Hein (2020) on that network, from `start`: points that are looked at until one is within the
// needle's eye; -1: none of them is.
std::int64_t looks_by_hand(double goal, double start, double radius, std::int64_t steps, double rho) {
  auto loss = [&](double x) { return -std::abs(x - goal); };
  auto project = [&](double x) { return std::min(std::max(x, kStart - radius), kStart + radius); };
  auto up = [&](double x, double step) { return project(x + (x < goal ? step : -step)); };
  std::vector<std::int64_t> checkpoints;
  for (double before = 0, now = 0.22; now <= 1;) {
    checkpoints.push_back(static_cast<std::int64_t>(std::ceil(now * static_cast<double>(steps))));
    double next = now + std::max(now - before - 0.03, 0.06);
    before = now;
    now = next;
  }
  double step = 2 * radius;
  std::vector<double> x = {start};
  std::vector<double> losses = {loss(start)};
  double best = start, best_before = losses[0], step_before = step;
  std::size_t next = 0;
  std::int64_t since = 0, gains = 0;
  if (loss(start) > -kEye) return 1;
  for (std::int64_t k = 1; k <= steps; ++k) {
    double now = x.back();
    double z = up(now, step);
    x.push_back(k == 1 ? z : project(now + 0.75 * (z - now) + 0.25 * (now - x[x.size() - 2])));
    losses.push_back(loss(x.back()));
    if (losses.back() > -kEye) return k + 1;
    gains += losses[losses.size() - 1] > losses[losses.size() - 2] ? 1 : 0;
    if (losses.back() > loss(best)) best = x.back();
    if (next == checkpoints.size() || k != checkpoints[next]) continue;
    bool condition1 = static_cast<double>(gains) < rho * static_cast<double>(k - since);
    bool condition2 = step == step_before && loss(best) == best_before;
    step_before = step;
    best_before = loss(best);
    gains = 0;
    since = checkpoints[next++];
    if (!condition1 && !condition2) continue;
    step /= 2;
    x.back() = best;
    losses.back() = loss(best);
  }
  return -1;
}

TEST(AttackApgd, TakesTheStepsOfItsAlgorithm) {
  int found = 0, missed = 0;
  // Goals that are reached, or not, before gains are of the size of rounding.
  for (double goal : {93.1, 101.1, 122.1, 150.1, 163.1, 171.1}) {
    auto network = needle(goal);
    for (double rho : {0.0, 0.5, 0.75}) {
      Attacked result = attacked(*network, fmt::format("apgd:eps=64/255,steps=100,rho={}", rho), one_pixel());
      auto looks = result.backward[0].item<std::int64_t>();
      std::int64_t left = looks_by_hand(goal, kStart - 64, 64, 100, rho);
      std::int64_t right = looks_by_hand(goal, kStart + 64, 64, 100, rho);
      bool success = result.success[0].item<bool>();
      EXPECT_TRUE(success ? looks == left || looks == right : (left == -1 || right == -1) && looks == 101)
          << goal << " rho " << rho << ": " << looks << " looks, by hand " << left << " or " << right;
      (success ? found : missed) += 1;
    }
  }
  EXPECT_GT(found, 9);
}

// The change that is needed is 20.5 levels, and its length outweighs a margin whose weight is less than 2·change/slope.
TEST(AttackCw, WeightGrowsTenfoldUntilItIsEnough) {
  constexpr double kChange = 20.5 / 255;
  struct Case {
    double enough;
    int searches;  // weights from 0.001 until one is above that
  };
  for (Case c : {Case{0.05, 3}, Case{0.5, 4}, Case{5, 5}}) {
    double slope = 2 * kChange / c.enough;
    auto network = scripted_network(
        "  lead = (x.flatten(1) - self.boundary) * self.slope\n"
        "  return torch.cat([torch.zeros_like(lead), lead], 1)\n",
        {{"boundary", at::full({1}, kStart / 255 + kChange)}, {"slope", at::full({1}, slope)}}, {1, 1, 1});
    for (int searches = 1; searches <= 6; ++searches) {
      Attacked result = attacked(*network, fmt::format("cw:steps=200,search={}", searches), one_pixel());
      EXPECT_EQ(result.success[0].item<bool>(), searches >= c.searches)
          << "enough is " << c.enough << ", " << searches << " searches";
    }
  }
}

// One step: the sign of its loss's slope. Class 0 is right; class 1 follows it closely, three others a little behind.
TEST(AttackPgd, ClimbsTheLossItIsTold) {
  struct Case {
    double second, others;  // slopes of the scores of class 1 and of classes 2 to 4
    double ce, margin, dlr;
  };
  for (Case c : {Case{-0.1, 0.3, 1, -1, -1}, Case{0.1, 0.3, 1, 1, -1}}) {
    auto network = scripted_network(
        "  d = (x.flatten(1) * 255 - 128) / 10\n"
        "  cliff = 100 * torch.relu(d.abs() - 0.95)\n"
        "  second = d * self.second - 1 + cliff\n"
        "  other = d * self.others - 1.2\n"
        "  return torch.cat([torch.zeros_like(d), second, other, other - 0.01, other - 0.02], 1)\n",
        {{"second", at::full({1}, c.second)}, {"others", at::full({1}, c.others)}}, {1, 1, 1});
    for (auto [loss, way] :
         std::vector<std::pair<const char*, double>>{{"ce", c.ce}, {"margin", c.margin}, {"dlr", c.dlr}}) {
      Attacked result =
          attacked(*network, fmt::format("pgd:eps=10/255,step=10/255,steps=1,random=false,loss={}", loss), one_pixel());
      ASSERT_TRUE(result.success[0].item<bool>()) << loss;
      EXPECT_EQ(result.inputs.item<int>(), kStart + 10 * way) << loss << " " << c.second;
    }
  }
}

}  // namespace
}  // namespace galvani
