// Attacks on linear networks, where the smallest change is known: margin / ‖w‖.
#include <gtest/gtest.h>

#include "attack/testing.h"

namespace galvani {
namespace {

using testing::attacked;
using testing::LinearCase;
using testing::task_of;

constexpr double kLevel = 1.0 / 255;

std::string with_eps(const std::string& spec, double eps) {
  return fmt::format("{}{}eps={:.17g}", spec, spec.find(':') == std::string::npos ? ":" : ",", eps);
}

// Attacks that must find the optimum of a linear network.
const std::vector<std::string>& strong_attacks() {
  static const std::vector<std::string> specs = {
      "pgd",          "pgd:loss=margin", "pgd:loss=dlr",    "bim",
      "apgd:loss=ce", "apgd:loss=dlr",   "apgd:loss=dlr-t", "auto:queries=50"};
  return specs;
}

TEST(LinearAttack, FgsmIsOptimalWithTwoClasses) {
  LinearCase linear(2, 40, 5);
  at::Tensor smallest = linear.smallest(Norm::linf);
  for (int levels : {1, 2, 4, 7, 12, 20}) {
    Attacked result =
        attacked(*linear.network, with_eps("fgsm", levels * kLevel), task_of(linear.images, linear.labels));
    for (std::int64_t row = 0; row < 40; ++row) {
      double lead = levels * kLevel - smallest[row].item<double>();
      if (std::abs(lead) < 1e-6) continue;
      EXPECT_EQ(result.success[row].item<bool>(), lead > 0) << levels << " row " << row;
    }
  }
}

TEST(LinearAttack, BoundedOnesSucceedExactlyBeyondTheCertifiedRadius) {
  LinearCase linear(5, 5);
  for (Norm norm : {Norm::linf, Norm::l2}) {
    at::Tensor smallest = linear.smallest(norm);
    for (std::int64_t row = 0; row < 5; ++row) {
      auto radius = smallest[row].item<double>();
      double below = norm == Norm::linf ? std::floor(radius * 255 - 1e-6) * kLevel : radius * 0.999;
      double above = norm == Norm::linf ? (std::floor(radius * 255) + 2) * kLevel : radius * 1.1;
      AttackTask task = task_of(linear.images.narrow(0, row, 1), linear.labels.narrow(0, row, 1));
      for (std::string spec : strong_attacks()) {
        spec += std::string(spec.find(':') == std::string::npos ? ":" : ",") + "norm=" + to_string(norm);
        Attacked inside = attacked(*linear.network, with_eps(spec, below), task);
        EXPECT_FALSE(inside.success.item<bool>()) << spec << " broke a certified input, row " << row;
        Attacked outside = attacked(*linear.network, with_eps(spec, above), task);
        EXPECT_TRUE(outside.success.item<bool>()) << spec << " row " << row;
      }
    }
  }
}

// Square is no optimiser; but what is certified, it must not break either.
TEST(LinearAttack, SquareNeverBreaksACertifiedInput) {
  LinearCase linear(5, 12);
  for (Norm norm : {Norm::linf, Norm::l2}) {
    at::Tensor smallest = linear.smallest(norm);
    auto least = smallest.min().item<double>();
    std::string spec = std::string("square:queries=300,norm=") + to_string(norm);
    Attacked inside = attacked(*linear.network, with_eps(spec, least * 0.999), task_of(linear.images, linear.labels));
    EXPECT_EQ(inside.success.sum().item<std::int64_t>(), 0) << spec;
    auto most = smallest.max().item<double>();
    Attacked outside = attacked(*linear.network, with_eps(spec, most * 4), task_of(linear.images, linear.labels));
    EXPECT_EQ(outside.success.sum().item<std::int64_t>(), 12) << spec;
  }
}

TEST(LinearAttack, SmallestChangesAreNearTheClosedForm) {
  LinearCase linear(6, 24);
  for (const char* spec : {"deepfool", "deepfool:norm=linf", "fab:norm=l2", "fab:norm=linf", "cw"}) {
    Attacked result = attacked(*linear.network, spec, task_of(linear.images, linear.labels));
    bool linf = make_attack(Spec::parse(spec))->norm() == Norm::linf;
    at::Tensor smallest = linear.smallest(linf ? Norm::linf : Norm::l2);
    for (std::int64_t row = 0; row < 24; ++row) {
      ASSERT_TRUE(result.success[row].item<bool>()) << spec << " row " << row;
      auto found = (linf ? result.linf : result.l2)[row].item<double>();
      auto best = smallest[row].item<double>();
      EXPECT_GE(found, best * (1 - 1e-6)) << spec << " row " << row;
      // What rounding costs at these sizes: a level in L∞, a few percent in L2.
      EXPECT_LE(found, linf ? best * 1.03 + 1.01 * kLevel : best * 1.05) << spec << " row " << row;
    }
  }
}

TEST(LinearAttack, TargetsAreReached) {
  LinearCase linear(6, 12);
  AttackTask task = task_of(linear.images, linear.labels);
  task.targets = (linear.labels + 2).remainder(6);
  for (const char* spec : {"fgsm:eps=1/5", "bim:eps=1/5", "pgd:eps=1/5", "apgd:eps=1/5", "apgd:eps=1/5,loss=dlr", "fab",
                           "auto:eps=1/5", "deepfool", "cw", "square:eps=0.4,queries=1000", "jsma:gamma=0.5"}) {
    Attacked result = attacked(*linear.network, spec, task);
    EXPECT_GE(result.success.sum().item<std::int64_t>(), std::string(spec).find("fgsm") == 0 ? 1 : 12) << spec;
    at::Tensor reached = result.predicted.eq(task.targets);
    EXPECT_TRUE(reached.equal(result.success)) << spec;
  }
}

}  // namespace
}  // namespace galvani
