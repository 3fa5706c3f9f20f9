#include "galvani/attack/attack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "attack/plane.h"
#include "attack/saliency.h"
#include "attack/testing.h"
#include "galvani/attack/search.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

using testing::attacked;
using testing::DigitsCase;
using testing::error_of;
using testing::LinearCase;
using testing::scripted_network;
using testing::task_of;

at::Tensor normal(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  at::Tensor result = at::empty(shape);
  Rng(seed).fill_normal(result.data_ptr<float>(), static_cast<std::size_t>(result.numel()));
  return result;
}

at::Tensor torch_gradient(const at::Tensor& value, const at::Tensor& of) {
  value.backward();
  at::Tensor result = of.grad().clone();
  of.mutable_grad().zero_();
  return result;
}

bool contains(const std::vector<std::string>& sentences, const std::string& part) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& sentence) { return sentence.find(part) != std::string::npos; });
}

TEST(AttackGradients, AgreeWithFiniteDifferences) {
  auto network = scripted_network("  return torch.matmul(torch.tanh(torch.matmul(x.flatten(1), self.a)), self.b)\n",
                                  {{"a", normal({192, 20}, 1) / 8}, {"b", normal({20, 6}, 2)}});
  at::Tensor images = LinearCase(2, 3).images;
  at::Tensor labels = predict(*network, images).labels;
  AttackTask task = task_of(images, labels);
  auto attack = make_attack(Spec::parse("fgsm"));
  Search search(*network, *attack, task, at::arange(3, at::kLong), predict(*network, images).logits);
  for (const Search::Loss& loss : {Search::Loss(odds_loss), Search::Loss(margin_loss)}) {
    Search::Slope slope = search.slope(search.originals(), search.all(), loss, search.labels());
    for (std::int64_t i = 0; i < 192; i += 7) {
      at::Tensor up = search.originals().clone(), down = search.originals().clone();
      up.flatten(1).select(1, i) += 2;
      down.flatten(1).select(1, i) -= 2;
      at::Tensor expected =
          (loss(search.logits(up, search.all()), labels) - loss(search.logits(down, search.all()), labels)) / 4;
      at::Tensor found = slope.gradient.flatten(1).select(1, i);
      auto scale = slope.gradient.abs().max().item<double>();
      EXPECT_LT((found - expected).abs().max().item<double>(), 0.01 * scale) << i;
    }
  }
}

// Its gradient is that of cross entropy up to a positive factor; and it is there when the network is sure.
TEST(AttackGradients, OddsPointWhereCrossEntropyPoints) {
  at::Tensor logits = normal({5, 7}, 3).requires_grad_(true);
  at::Tensor labels = at::tensor({0, 1, 2, 3, 4}, at::kLong);
  at::Tensor odds = torch_gradient(odds_loss(logits, labels).sum(), logits);
  at::Tensor entropy = torch_gradient(at::nll_loss(logits.log_softmax(1), labels, {}, at::Reduction::Sum), logits);
  for (std::int64_t row = 0; row < 5; ++row)
    EXPECT_NEAR(at::cosine_similarity(odds[row], entropy[row], 0).item<double>(), 1, 1e-5);
  at::Tensor sure = (at::one_hot(labels, 7).to(at::kFloat) * 300).requires_grad_(true);
  EXPECT_GT(torch_gradient(odds_loss(sure, labels).sum(), sure).abs().amax(1).min().item<double>(), 0.9);
}

TEST(AttackPlane, StepIsTheShortestThatStaysInTheBox) {
  Rng rng(4);
  for (bool linf : {false, true}) {
    for (int trial = 0; trial < 50; ++trial) {
      constexpr std::int64_t kLength = 30;
      std::vector<float> x(kLength), w(kLength), d(kLength);
      for (std::size_t i = 0; i < kLength; ++i) {
        x[i] = static_cast<float>(rng.uniform(0, 255));
        w[i] = static_cast<float>(rng.normal());
      }
      double c = rng.normal() * 600;
      double length = step_to_plane(x.data(), w.data(), c, linf, 0, 255, kLength, d.data());
      double reached = 0, most = 0, largest = 0;
      for (std::size_t i = 0; i < kLength; ++i) {
        EXPECT_GE(x[i] + d[i], -1e-3);
        EXPECT_LE(x[i] + d[i], 255 + 1e-3);
        reached += static_cast<double>(w[i]) * d[i];
        most += std::abs(w[i]) * ((w[i] > 0) == (c > 0) ? 255 - x[i] : x[i]);
        largest = std::max(largest, std::abs(static_cast<double>(d[i])));
      }
      EXPECT_NEAR(reached, std::copysign(std::min(std::abs(c), most), c), 1e-3 * std::abs(c) + 1e-3);
      if (most < std::abs(c)) continue;
      // The conditions of Karush, Kuhn and Tucker: what is not at the end of its room moves as far as all others (L∞)
      // or in proportion to its weight (L2).
      for (std::size_t i = 0; i < kLength; ++i) {
        double room = (w[i] > 0) == (c > 0) ? 255 - x[i] : x[i];
        double size = std::abs(static_cast<double>(d[i]));
        if (size > room - 1e-3) continue;
        if (linf) {
          EXPECT_NEAR(size, length, 1e-3);
        }
        for (std::size_t j = 0; j < kLength && !linf; ++j)
          EXPECT_LE(std::abs(static_cast<double>(d[j])), size * std::abs(w[j] / w[i]) + 1e-2);
      }
      if (linf) {
        EXPECT_NEAR(largest, length, 1e-3);
      }
    }
  }
}

TEST(AttackSaliency, FindsTheBestOfAllPairs) {
  Rng rng(8);
  SaliencyPairs finder;
  for (int trial = 0; trial < 300; ++trial) {
    std::int64_t n = rng.between(2, 60);
    std::vector<float> alpha, beta;
    std::vector<char> open;
    for (std::int64_t i = 0; i < n; ++i) {
      // Many ties.
      alpha.push_back(trial % 2 == 0 ? static_cast<float>(rng.normal()) : static_cast<float>(rng.between(-3, 3)));
      beta.push_back(trial % 2 == 0 ? static_cast<float>(rng.normal()) : static_cast<float>(rng.between(-3, 3)));
      open.push_back(rng.chance(0.8) ? 1 : 0);
    }
    double most = 0;
    for (std::size_t p = 0; p < alpha.size(); ++p) {
      for (std::size_t q = p + 1; q < alpha.size(); ++q) {
        double up = static_cast<double>(alpha[p]) + alpha[q], down = static_cast<double>(beta[p]) + beta[q];
        if (open[p] != 0 && open[q] != 0 && up > 0 && down < 0) most = std::max(most, -up * down);
      }
    }
    auto [p, q] = finder.best(alpha.data(), beta.data(), open.data(), n);
    if (most == 0) {
      EXPECT_EQ(p, -1);
      continue;
    }
    ASSERT_GE(p, 0);
    ASSERT_LT(p, q);
    auto at = [](const std::vector<float>& of, std::int64_t i) {
      return static_cast<double>(of[static_cast<std::size_t>(i)]);
    };
    EXPECT_TRUE(open[static_cast<std::size_t>(p)] != 0 && open[static_cast<std::size_t>(q)] != 0);
    EXPECT_DOUBLE_EQ(-(at(alpha, p) + at(alpha, q)) * (at(beta, p) + at(beta, q)), most);
  }
}

TEST(AttackLevels, AreWhole) {
  EXPECT_EQ(whole_levels(8.0 / 255, 255), 8);
  EXPECT_EQ(whole_levels(0.3, 255), 76);
  EXPECT_EQ(whole_levels(0.9 / 255, 255), 0);
  EXPECT_EQ(whole_levels(0.002, 32768), 65);
}

// Changes of less than a grey level vanish when they are rounded, unless somebody looks after them.
TEST(AttackRounding, KeepsWhatWasFound) {
  LinearCase linear(10, 64, 0);
  // Margins a fraction of what they are: the smallest change is about half a level everywhere.
  at::Tensor scores = predict(*linear.network, linear.images).logits;
  at::Tensor best = std::get<0>(scores.topk(2, 1));
  at::Tensor near = (best.select(1, 0) - best.select(1, 1)).lt(best.select(1, 0).median() * 0.3).nonzero().flatten();
  ASSERT_GE(near.numel(), 8);
  AttackTask task = task_of(linear.images.index_select(0, near), linear.labels.index_select(0, near));
  for (const char* spec : {"deepfool", "cw", "fab:norm=l2", "fab", "pgd:norm=l2,eps=0.3,steps=10"}) {
    Attacked result = attacked(*linear.network, spec, task);
    auto floats = result.success_float.sum().item<double>();
    EXPECT_GT(floats, 0) << spec;
    EXPECT_GE(result.success.sum().item<double>(), 0.97 * floats) << spec;
  }
}

TEST(AttackRefusals, NetworkWithoutGradients) {
  auto network = scripted_network("  return torch.matmul(torch.round(x.flatten(1) * 255), self.w)\n",
                                  {{"w", normal({192, 4}, 1)}});
  at::Tensor images = LinearCase(2, 8).images;
  AttackTask task = task_of(images, predict(*network, images).labels);
  for (const char* spec : {"fgsm", "pgd", "deepfool", "cw", "jsma", "fab", "auto"}) {
    std::string error = error_of([&] { attacked(*network, spec, task); });
    EXPECT_NE(error.find("has no gradients"), std::string::npos) << spec << ": " << error;
    EXPECT_NE(error.find("square"), std::string::npos);
  }
  EXPECT_GT(attacked(*network, "square:eps=0.2,queries=200", task).success.sum().item<std::int64_t>(), 0);
}

TEST(AttackRefusals, ImpossibleBound) {
  EXPECT_NE(error_of([] { make_attack(Spec::parse("pgd:eps=8")); }).find("8/255"), std::string::npos);
  EXPECT_EQ(make_attack(Spec::parse("pgd:eps=8,norm=l2"))->epsilon(), 8);
  EXPECT_NE(error_of([] { make_attack(Spec::parse("pgd:norm=l1")); }), "");
  EXPECT_NE(error_of([] { make_attack(Spec::parse("pgd:eps=-1/255")); }), "");
}

TEST(AttackWarnings, SayWhatACarefulEvaluatorWould) {
  DigitsCase digits(64);
  auto pgd = make_attack(Spec::parse("pgd"));
  at::Tensor right = predict(*digits.network, digits.images).labels;
  EXPECT_TRUE(attack_warnings(*digits.network, *pgd, digits.images, right).empty());
  EXPECT_TRUE(contains(attack_warnings(*digits.network, *make_attack(Spec::parse("pgd:eps=0.3")), digits.images, right),
                       "76.5 grey levels"));
  at::Tensor drawn = at::arange(64).remainder(10);
  EXPECT_TRUE(contains(attack_warnings(*digits.network, *pgd, digits.images, drawn), "near chance"));
  EXPECT_TRUE(contains(attack_warnings(*digits.network, *pgd, digits.images, (right + 1).remainder(10)),
                       "--label-shift -1 takes it so"));

  LinearCase linear(4, 64);
  std::map<std::string, at::Tensor> weights = {{"w", linear.weight}, {"b", linear.bias}};
  auto warned = [&](const std::string& body, const std::string& spec) {
    auto network = scripted_network(body, weights);
    at::Tensor labels = predict(*network, linear.images).labels;
    return attack_warnings(*network, *make_attack(Spec::parse(spec)), linear.images, labels);
  };
  EXPECT_TRUE(contains(warned("  p = torch.softmax(torch.matmul(x.flatten(1), self.w.t()), 1)\n"
                              "  return p * 0.5 + torch.flip(torch.flip(p, [1]), [1]) * 0.5\n",
                              "pgd"),
                       "probabilities"));
  EXPECT_TRUE(
      contains(warned("  return torch.matmul(torch.round(x.flatten(1)), self.w.t())\n", "pgd"), "zero for 100%"));
  EXPECT_FALSE(contains(warned("  return torch.matmul(torch.round(x.flatten(1)), self.w.t())\n", "square"), "zero"));
  ::setenv("GALVANI_TRUST_MODELS", "1", 1);  // otherwise such a file is refused
  EXPECT_TRUE(contains(
      warned("  return torch.matmul(x.flatten(1) + torch.randn_like(x.flatten(1)), self.w.t())\n", "pgd"), "random"));
  ::unsetenv("GALVANI_TRUST_MODELS");
}

}  // namespace
}  // namespace galvani
