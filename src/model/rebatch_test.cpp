#include <gtest/gtest.h>

#include <algorithm>

#include "model/network_impl.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::random_images;
using testing::scripted;

// A patch embedding, a class token, and shapes as an exporter writes them for one image.
std::unique_ptr<Network> tokens() {
  at::manual_seed(2);
  return scripted(R"(
    def forward(self, x):
        y = torch.conv2d(x, self.conv_weight, None, [2, 2])
        y = y.reshape([1, 4, 16]).transpose(1, 2)
        y = torch.cat([self.token, y], 1)
        h = torch.relu(torch.linear(y.reshape([17, 4]), self.fc_weight))
        return torch.linear(h.view([1, 17, 5]).mean([1]), self.head_weight)
  )",
                  {{"conv_weight", at::randn({4, 3, 2, 2})},
                   {"token", at::randn({1, 1, 4})},
                   {"fc_weight", at::randn({5, 4})},
                   {"head_weight", at::randn({6, 5})}});
}

// Windows: the images share an axis with their parts.
std::unique_ptr<Network> windows() {
  at::manual_seed(3);
  return scripted(R"(
    def forward(self, x):
        y = torch.relu(torch.conv2d(x, self.conv_weight, None, [2, 2]))
        y = y.view([1, 4, 2, 2, 2, 2]).permute([0, 2, 4, 3, 5, 1]).reshape([4, 4, 4])
        y = torch.matmul(torch.softmax(torch.matmul(y, y.transpose(1, 2)), -1), y)
        y = torch.linear(y, self.fc_weight)
        y = y.view([1, 2, 2, 2, 2, 5]).permute([0, 1, 3, 2, 4, 5]).reshape([1, 4, 4, 5])
        return torch.linear(y.reshape([1, 80]), self.head_weight)
  )",
                  {{"conv_weight", at::randn({4, 3, 2, 2})},
                   {"fc_weight", at::randn({5, 4})},
                   {"head_weight", at::randn({6, 80})}});
}

// Sums are taken in another order in batches, so what is lost is a share of the largest values, not of each.
void expect_near(const at::Tensor& a, const at::Tensor& b, double share) {
  EXPECT_LE((a - b).abs().max().item<double>(), share * std::max(1.0, a.abs().max().item<double>()));
}

void expect_rows_as_alone(Network& network) {
  EXPECT_EQ(network.info().fixed_batch, 0);
  at::Tensor images = random_images(network, 37);
  Request together;
  together.taps = network.select_taps("all");
  ASSERT_FALSE(together.taps.empty());
  together.form = TapForm::full;
  together.input_gradient = true;
  together.objective = [](const Pass& pass) { return pass.logits.select(1, 0) - pass.logits.select(1, 3); };
  Request alone = together;
  alone.alone = true;
  Outputs a = network.run(images, alone);
  Outputs b = network.run(images, together);
  expect_near(a.logits, b.logits, 1e-5);
  expect_near(a.input_gradient, b.input_gradient, 1e-5);
  for (std::size_t i = 0; i < a.taps.size(); ++i) expect_near(a.taps[i], b.taps[i], 1e-5);
  EXPECT_GT((a.logits - a.logits.select(0, 0)).abs().max().item<double>(), 1e-2);  // the images do differ
}

TEST(Rebatch, TokensAndWindowsRunInBatches) {
  expect_rows_as_alone(*tokens());
  expect_rows_as_alone(*windows());
}

TEST(Rebatch, ClonesRunInBatchesWithTheirOwnWeights) {
  auto network = windows();
  auto clone = network->clone();
  expect_rows_as_alone(*clone);
  at::Tensor images = random_images(*network, 5);
  at::Tensor before = network->run(images).logits;
  clone->set_parameter("head_weight", clone->parameter("head_weight") * 2);
  EXPECT_TRUE(at::allclose(clone->run(images).logits, before * 2, 1e-5, 1e-5));
  EXPECT_TRUE(at::equal(network->run(images).logits, before));
}

TEST(Rebatch, ImagesThatMeetStayAlone) {
  auto meeting = [] {
    return scripted(R"(
      def forward(self, x):
          return torch.linear(torch.softmax(x.reshape([1, 192]), 0), self.weight)
    )",
                    {{"weight", at::randn({2, 192})}});
  };
  EXPECT_NE(error_of(meeting).find("takes batches of 1 only"), std::string::npos);
}

}  // namespace
}  // namespace galvani
