#include "model/head.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/model/evaluate.h"
#include "model/network_impl.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::scripted;

// One network with different ends. What the file gives is known from `any_output`.
struct HeadCase {
  std::string name;
  std::string end;  // of y [N, 10], and of z [N, 10, 1, 1]
  Head head;
  bool made;
};

class HeadTest : public ::testing::Test {
 protected:
  HeadTest() {
    at::manual_seed(1);
    weights_ = {{"weight", at::randn({10, 3 * 8 * 8}) * 0.7}};
    images_ = at::randint(0, 256, {40, 3, 8, 8}, at::kByte);
  }
  std::unique_ptr<Network> load(const std::string& end, const std::string& head = "", bool any_output = false) const {
    Network::Options options = testing::script_options();
    options.any_output = any_output;
    options.flags.head = head;
    return scripted(
        "    def forward(self, x):\n        y = torch.linear(torch.flatten(x, 1), self.weight)\n"
        "        z = y.reshape(-1, 10, 1, 1)\n" +
            end,
        weights_, options);
  }
  std::map<std::string, at::Tensor> weights_;
  at::Tensor images_;
};

TEST_F(HeadTest, ProbabilitiesAreShownAsTheyAre) {
  const std::vector<HeadCase> cases = {
      {"logits", "return y", Head::logits, false},
      {"softmax", "return torch.softmax(y, 1)", Head::softmax, false},
      {"of maps", "return torch.softmax(z, 1).flatten(1)", Head::softmax, false},
      {"reshaped", "return torch.softmax(y, -1).reshape(-1, 10)", Head::softmax, false},
      {"clipped", "return torch.softmax(y, 1).clamp(1e-7, 0.9999999)", Head::softmax, false},
      {"written out", "e = torch.exp(y)\n        return e / e.sum(1, keepdim=True)", Head::softmax, false},
      {"written out with care",
       "e = torch.exp(y - torch.amax(y, [1], True))\n        return e / torch.sum(e, [1], True)", Head::softmax, false},
      {"log-softmax", "return torch.log_softmax(y, 1)", Head::log_softmax, false},
      {"log of softmax", "return torch.log(torch.softmax(y, 1))", Head::log_softmax, false},
      {"sigmoid", "return torch.sigmoid(y)", Head::sigmoid, false},
      {"sigmoid of maps", "return torch.sigmoid(z).squeeze(3).squeeze(2)", Head::sigmoid, false},
      {"hidden softmax", "p = torch.softmax(y, 1)\n        return torch.cat([p[:, :5], p[:, 5:]], 1)", Head::softmax,
       true},
      {"hidden sigmoid", "return 1 / (1 + torch.exp(-y))", Head::sigmoid, true},
  };
  at::Tensor scores = load("        return y\n")->run(images_).logits;
  for (const HeadCase& c : cases) {
    std::string end = "        " + c.end + "\n";
    auto network = load(end);
    EXPECT_EQ(network->info().head, c.head) << c.name;
    EXPECT_EQ(network->info().logits_made, c.made) << c.name;
    Predictions found = predict(*network, images_);
    at::Tensor file = load(end, "", true)->apply(images_)[0];
    at::Tensor shown = c.head == Head::logits ? file.softmax(1) : c.head == Head::log_softmax ? file.exp() : file;
    EXPECT_TRUE(at::allclose(found.probabilities, shown, 1e-3, 1e-5)) << c.name;
    EXPECT_TRUE(at::equal(found.labels, scores.argmax(1))) << c.name;
    if (!c.made) {
      EXPECT_TRUE(at::allclose(found.logits, scores, 1e-4, 1e-4)) << c.name;
    }
    bool said = false;
    for (const std::string& note : network->info().notes)
      said = said || note.find("probabilities") != std::string::npos;
    EXPECT_EQ(said, c.made) << c.name;
    auto copy = network->clone();
    EXPECT_TRUE(at::allclose(copy->run(images_).logits, found.logits, 1e-5, 1e-5)) << c.name;
  }
}

// What looks like a head and is none of each row: the file's output counts.
TEST_F(HeadTest, ASoftmaxOfSomethingElseStays) {
  for (const char* end : {"        return torch.softmax(torch.cat([z, z * z], 3), 3).sum(3).flatten(1) + y\n",
                          "        return torch.softmax(y, 1).reshape(-1, 10) * 3 - 1\n"}) {
    auto network = load(end);
    EXPECT_EQ(network->info().head, Head::logits) << end;
    EXPECT_TRUE(at::allclose(network->run(images_).logits, load(end, "", true)->apply(images_)[0], 1e-4, 1e-5)) << end;
  }
  // Over an axis of one it gives ones: neither scores nor a distribution.
  auto ones = load("        return torch.softmax(z, 3).flatten(1)\n");
  EXPECT_EQ(ones->run(images_.narrow(0, 0, 3)).logits.std(1).max().item<double>(), 0);
}

TEST_F(HeadTest, TheFlagDecides) {
  at::Tensor p = load("        return torch.softmax(y, 1)\n", "", true)->apply(images_)[0];
  auto as_scores = load("        return torch.softmax(y, 1)\n", "logits");
  EXPECT_EQ(as_scores->info().head, Head::logits);
  EXPECT_TRUE(at::allclose(as_scores->run(images_).logits, p, 1e-5, 1e-6));
  auto odds = load("        return torch.softmax(y, 1)\n", "sigmoid");
  EXPECT_TRUE(odds->info().logits_made);
  EXPECT_TRUE(at::allclose(predict(*odds, images_).probabilities, p, 1e-3, 1e-5));
  EXPECT_NE(error_of([&] { load("        return y\n", "tanh"); }).find("--head"), std::string::npos);
}

// Noise gives nothing away; data do.
TEST_F(HeadTest, TheFirstDataTellToo) {
  std::string end =
      "        grey = ((x[:, 0, 0, 2:3] - 0.5).abs() < 0.02).type_as(x)\n"
      "        d = (x[:, 0, 0, 0:1] - x[:, 0, 0, 1:2]).clamp(0, 1) * grey\n"
      "        return 1 / (1 + torch.exp(3 - d * 8 - torch.tanh(y) * 0.001))\n";
  auto network = load(end);
  EXPECT_EQ(network->info().head, Head::logits);
  EXPECT_FALSE(network->head_settled());
  at::Tensor edge = at::zeros({4, 3, 8, 8}, at::kByte);
  edge.select(2, 0).select(2, 0).fill_(255);
  edge.select(2, 0).select(2, 2).fill_(128);
  network->settle_head(edge);
  EXPECT_TRUE(network->head_settled());
  EXPECT_EQ(network->info().head, Head::sigmoid);
  EXPECT_EQ(network->card().head, "sigmoid");
}

TEST_F(HeadTest, SmallScoresAreNoProbabilities) {
  // Means of pixels lie between 0 and 1 as long as pixels do.
  for (const char* end : {"        return torch.relu(y) * 0.01\n",
                          "        return torch.cat([x.mean([2, 3]), 1 - x.mean([2, 3])], 1)\n"}) {
    auto network = load(end);
    EXPECT_EQ(network->info().head, Head::logits) << end;
    network->settle_head(at::cat({images_, at::full({4, 3, 8, 8}, 255, at::kByte)}));
    EXPECT_EQ(network->info().head, Head::logits) << end;
  }
}

TEST(HeadOfValues, ByHand) {
  auto of = [](const std::vector<float>& values) { return head_of_values(at::tensor(values).view({-1, 2})); };
  EXPECT_EQ(of({.3F, .7F, 1, 0}), Head::softmax);
  EXPECT_EQ(of({.3F, .7F, .99F, .3F}), Head::sigmoid);
  EXPECT_EQ(of({.3F, .7F, .9F, .3F}), Head::logits);
  EXPECT_EQ(of({.3F, .7F, 1.1F, -.1F}), Head::logits);
  EXPECT_EQ(of({.3F, std::nanf(""), 1, 0}), Head::logits);
}

}  // namespace
}  // namespace galvani
