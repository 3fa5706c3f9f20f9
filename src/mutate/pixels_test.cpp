// Contrast, brightness, blur, pixel change, noise.
#include <gtest/gtest.h>

#include <cmath>

#include "mutate/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::gray;
using testing::mutated;
using testing::values;

TEST(Pixels, ContrastMultipliesRoundsAndSaturates) {
  // 0.8 · 3 = 2.4, 0.8 · 7 = 5.6, 0.8 · 255 = 204.
  EXPECT_EQ(values(mutated("contrast:gain=0.8", gray({{0, 3, 7, 100, 255}}))), (std::vector<int>{0, 2, 6, 80, 204}));
  EXPECT_EQ(values(mutated("contrast:gain=2", gray({{0, 3, 127, 128, 255}}))), (std::vector<int>{0, 6, 254, 255, 255}));
  // Halves go to the even neighbour: 4.5 and 7.5.
  EXPECT_EQ(values(mutated("contrast:gain=1.5", gray({{3, 5}}))), (std::vector<int>{4, 8}));
}

TEST(Pixels, ContrastAboutTheMean) {
  // The mean is 100: distances -100, -40, 140 halve.
  EXPECT_EQ(values(mutated("contrast:gain=0.5,about=mean", gray({{0, 60, 240}}))), (std::vector<int>{50, 80, 170}));
  EXPECT_EQ(values(mutated("contrast:gain=2,about=mean", gray({{0, 60, 240}}))), (std::vector<int>{0, 20, 255}));
}

TEST(Pixels, BrightnessAddsAndSaturates) {
  EXPECT_EQ(values(mutated("brightness:offset=20", gray({{0, 235, 236, 255}}))), (std::vector<int>{20, 255, 255, 255}));
  EXPECT_EQ(values(mutated("brightness:offset=-20", gray({{0, 19, 20, 255}}))), (std::vector<int>{0, 0, 0, 235}));
  EXPECT_EQ(values(mutated("brightness:factor=0.5", gray({{0, 10, 200}}))), (std::vector<int>{0, 5, 100}));
  EXPECT_EQ(values(mutated("brightness:offset=5,factor=0.5", gray({{0, 10, 200}}))), (std::vector<int>{5, 10, 105}));
}

TEST(Pixels, BoxBlurAveragesNineWithAMirroredBorder) {
  at::Tensor image = gray({{9, 0, 0}, {0, 90, 0}, {0, 0, 18}});
  std::vector<int> blurred = values(mutated("blur:kind=box,size=3", image));
  EXPECT_EQ(blurred[4], 13);  // (9 + 90 + 18) / 9
  // The corner sees itself once, its neighbours twice, the centre four times: (9 + 4 · 90) / 9.
  EXPECT_EQ(blurred[0], 41);
  // An edge sees the row inside twice: rows (0 90 0) twice and (9 0 0) once: 189 / 9.
  EXPECT_EQ(blurred[1], 21);
}

TEST(Pixels, EvenBoxLooksUpAndLeft) {
  // Size 2 at (x, y) covers x-1, x; a lone 200 is spread right and down.
  std::vector<int> blurred = values(mutated("blur:kind=box,size=2", gray({{0, 0, 0}, {0, 200, 0}, {0, 0, 0}})));
  EXPECT_EQ(blurred[4], 50);
  EXPECT_EQ(blurred[8], 50);
  EXPECT_EQ(blurred[5], 50);
}

TEST(Pixels, GaussianBlurHasBinomialWeights) {
  // OpenCV's 3-tap kernel for sigma 0 is 1/4, 1/2, 1/4.
  std::vector<int> blurred = values(mutated("blur:kind=gaussian,size=3", gray({{0, 0, 0}, {0, 160, 0}, {0, 0, 0}})));
  EXPECT_EQ(blurred[4], 40);
}

TEST(Pixels, MedianRemovesASpeck) {
  at::Tensor image = at::full({1, 5, 5}, 70, at::kByte);
  image[0][2][2] = 255;
  EXPECT_TRUE(mutated("blur:kind=median,size=3", image).equal(at::full({1, 5, 5}, 70, at::kByte)));
}

TEST(Pixels, BilateralKeepsASharpEdge) {
  at::Tensor image = at::zeros({3, 9, 12}, at::kByte);
  image.slice(2, 6).fill_(250);
  at::Tensor box = mutated("blur:kind=box,size=9", image);
  at::Tensor kept = mutated("blur:kind=bilateral,size=9,sigma=10", image);
  EXPECT_TRUE(kept.equal(image));
  EXPECT_FALSE(box.equal(image));
}

TEST(Pixels, BilateralComparesWholeColours) {
  // Red differs, green and blue agree: each plane alone would mix green freely, colours together do not.
  at::Tensor image = at::zeros({3, 9, 12}, at::kByte);
  image[0].slice(1, 6).fill_(250);
  image[1].slice(1, 6).fill_(10);
  EXPECT_TRUE(mutated("blur:kind=bilateral,size=5,sigma=12", image)[1].equal(image[1]));
  EXPECT_FALSE(mutated("blur:kind=bilateral,size=5,sigma=12", image.slice(0, 1, 2))[0].equal(image[1]));
}

TEST(Pixels, EvenGaussianAndMedianAreRefused) {
  at::Tensor image = gray({{1}});
  EXPECT_NE(error_of([&] { mutated("blur:kind=median,size=4", image); }).find("odd size, not 4"), std::string::npos);
  EXPECT_NE(error_of([&] { mutated("blur:kind=gaussian,size=2", image); }).find("odd"), std::string::npos);
  EXPECT_EQ(error_of([&] { mutated("blur:kind=box,size=4", image); }), "");
}

TEST(Pixels, PixelChangeTouchesAtMostSoManyPlaces) {
  at::Tensor image = at::full({3, 28, 28}, 100, at::kByte);
  at::Tensor changed = mutated("pixel-change:count=5,seed=7", image);
  auto places = (changed != image).any(0).sum().item<std::int64_t>();
  EXPECT_GE(places, 3);
  EXPECT_LE(places, 5);
  EXPECT_FALSE(changed.equal(mutated("pixel-change:count=5,seed=8", image)));
  EXPECT_TRUE(image.equal(mutated("pixel-change:count=0,seed=8", image)));
}

TEST(Pixels, GaussianNoiseHasItsDeviation) {
  at::Tensor image = at::full({1, 200, 200}, 128, at::kByte);
  at::Tensor noise = mutated("noise:sigma=20,seed=3", image).to(at::kDouble) - 128;
  EXPECT_NEAR(noise.mean().item<double>(), 0, 0.4);
  EXPECT_NEAR(noise.std().item<double>(), 20, 0.3);
  // Within one deviation lie 68%.
  EXPECT_NEAR((noise.abs() <= 20).to(at::kDouble).mean().item<double>(), 0.695, 0.01);
  EXPECT_GT(noise.abs().max().item<double>(), 70);
}

TEST(Pixels, ShotAndSpeckleNoiseFollowTheLight) {
  auto deviation = [](const std::string& rule, int level) {
    at::Tensor image = at::full({1, 100, 100}, level, at::kByte);
    return (mutated(rule, image).to(at::kDouble) - level).std().item<double>();
  };
  EXPECT_NEAR(deviation("noise:sigma=20,kind=shot,seed=1", 64), 20 * std::sqrt(64 / 255.0), 0.4);
  EXPECT_NEAR(deviation("noise:sigma=20,kind=speckle,seed=1", 128), 20 * 128 / 255.0, 0.4);
  EXPECT_EQ(deviation("noise:sigma=20,kind=speckle,seed=1", 0), 0);
  EXPECT_EQ(deviation("noise:sigma=20,kind=shot,seed=1", 0), 0);
}

TEST(Pixels, SaltAndPepperIsBlackAndWhite) {
  at::Tensor image = at::full({3, 50, 50}, 100, at::kByte);
  at::Tensor changed = mutated("noise:kind=salt-pepper,share=0.1,seed=1", image);
  auto white = (changed == 255).all(0).sum().item<std::int64_t>();
  auto black = (changed == 0).all(0).sum().item<std::int64_t>();
  auto same = (changed == 100).all(0).sum().item<std::int64_t>();
  EXPECT_EQ(white + black + same, 2500);
  EXPECT_NEAR(static_cast<double>(white), 125, 20);
  EXPECT_NEAR(static_cast<double>(black), 125, 20);
}

}  // namespace
}  // namespace galvani
