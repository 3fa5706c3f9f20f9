#include "galvani/trace/deep_features.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/data/dataset.h"
#include "galvani/model/zoo.h"

namespace galvani {
namespace {

TEST(DeepFeatures, AreWhatGoesIntoTheLastLayer) {
  Rng rng(1);
  auto network = Network::from_onnx(architectures().create(Spec::parse("lenet5"), {1, 28, 28, 10}, rng), "lenet5", {});
  at::Tensor images = load_data("digits:test[0:70]").images;
  at::Tensor features = deep_features(*network, feature_of(*network, "penultimate"), images);
  ASSERT_EQ(features.sizes(), (std::vector<std::int64_t>{70, 84}));
  at::Tensor scores = features.matmul(network->parameter("fc3.weight").t()) + network->parameter("fc3.bias");
  EXPECT_TRUE(at::allclose(scores, network->run(images).logits, 1e-4, 1e-5));
  at::Tensor of_tap = deep_features(*network, feature_of(*network, "conv1"), images.narrow(0, 0, 3));
  EXPECT_EQ(of_tap.sizes(), (std::vector<std::int64_t>{3, 6 * 28 * 28}));
}

TEST(DeepFeatures, CosinesByHand) {
  at::Tensor a = at::tensor({3.0F, 4.0F, 1.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F}).view({4, 2});
  at::Tensor b = at::tensor({4.0F, 3.0F, -2.0F, 0.0F, 0.0F, 0.0F, 1.0F, 1.0F}).view({4, 2});
  at::Tensor cosine = cosines(a, b);
  EXPECT_NEAR(cosine[0].item<double>(), 24.0 / 25, 1e-6);
  EXPECT_NEAR(cosine[1].item<double>(), -1, 1e-6);
  EXPECT_EQ(cosine[2].item<double>(), 1);
  EXPECT_EQ(cosine[3].item<double>(), 0);
}

}  // namespace
}  // namespace galvani
