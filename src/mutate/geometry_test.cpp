#include <gtest/gtest.h>

#include <cmath>
#include <opencv2/imgproc.hpp>

#include "mutate/testing.h"

namespace galvani {
namespace {

using testing::gray;
using testing::mutated;
using testing::values;

const std::vector<std::vector<int>> kSteps = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};

TEST(Geometry, TranslationFillsWithZeros) {
  EXPECT_EQ(values(mutated("translation:x=1,y=0", gray(kSteps))), (std::vector<int>{0, 1, 2, 0, 4, 5, 0, 7, 8}));
  EXPECT_EQ(values(mutated("translation:x=0,y=-2", gray(kSteps))), (std::vector<int>{7, 8, 9, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(values(mutated("translation:x=-1,y=1", gray(kSteps))), (std::vector<int>{0, 0, 0, 2, 3, 0, 5, 6, 0}));
}

TEST(Geometry, TranslationBeyondTheImageLeavesNothing) {
  for (const char* rule : {"translation:x=3,y=0", "translation:x=0,y=-3", "translation:x=5,y=5"})
    EXPECT_EQ(values(mutated(rule, gray(kSteps))), std::vector<int>(9, 0)) << rule;
}

TEST(Geometry, TranslationMovesEveryChannel) {
  at::Tensor image = at::arange(27, at::kByte).reshape({3, 3, 3});
  at::Tensor moved = mutated("translation:x=1,y=0", image);
  for (int c = 0; c < 3; ++c) {
    EXPECT_TRUE(moved[c].slice(1, 1).equal(image[c].slice(1, 0, 2))) << c;
    EXPECT_EQ(moved[c].slice(1, 0, 1).max().item<int>(), 0) << c;
  }
}

TEST(Geometry, ShiftIsAShareOfTheSizeInWholePixels) {
  at::Tensor image = testing::picture({1, 20, 40});
  // 0.1 of 40 columns, 0.075 of 20 rows (1.5, rounded away from zero).
  EXPECT_TRUE(mutated("shift:x=0.1,y=-0.075", image).equal(mutated("translation:x=4,y=-2", image)));
}

TEST(Geometry, RotationByARightAngleIsExact) {
  EXPECT_EQ(values(mutated("rotation:angle=90", gray(kSteps))), (std::vector<int>{3, 6, 9, 2, 5, 8, 1, 4, 7}));
  EXPECT_EQ(values(mutated("rotation:angle=-90", gray(kSteps))), (std::vector<int>{7, 4, 1, 8, 5, 2, 9, 6, 3}));
  EXPECT_EQ(values(mutated("rotation:angle=180", gray(kSteps))), (std::vector<int>{9, 8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(Geometry, RotationBy45DegreesInterpolates) {
  // The corner of a 3x3 image comes from (1 - sqrt 2, 1) or the like: 0.4142 outside, so 1 - 0.4142 of a 200 edge.
  at::Tensor image = gray({{0, 0, 0}, {200, 100, 200}, {0, 0, 0}});
  std::vector<int> turned = values(mutated("rotation:angle=45", image));
  EXPECT_EQ(turned[4], 100);
  EXPECT_NEAR(turned[2], 200 * (1 - 0.41421), 1);
  EXPECT_NEAR(turned[6], 200 * (1 - 0.41421), 1);
  // The other diagonal comes from (1, 1 ∓ sqrt 2), where the image is dark: at its border, 0.4142 outside.
  EXPECT_EQ(turned[0], 0);
  // Above the centre: from (1 ± 0.7071, 1 - 0.7071), the bilinear mixture of four neighbours.
  EXPECT_NEAR(turned[1], (1 - 0.7071) * ((1 - 0.7071) * 100 + 0.7071 * 200), 1);
}

TEST(Geometry, ScaleHalvesAboutTheCentre) {
  // Pixels -2, 0, 2 around the centre of five become -1, 0, 1.
  at::Tensor image = gray({{10, 20, 30, 40, 50}});
  EXPECT_EQ(values(mutated("scale:ratio=0.5", image)), (std::vector<int>{0, 10, 30, 50, 0}));
  EXPECT_EQ(values(mutated("scale:ratio=2", image)), (std::vector<int>{20, 25, 30, 35, 40}));
}

TEST(Geometry, ShearMovesRowsByTheirDistanceFromTheMiddle) {
  at::Tensor image = gray({{0, 9, 0}, {0, 9, 0}, {0, 9, 0}});
  EXPECT_EQ(values(mutated("shear:factor=1", image)), (std::vector<int>{9, 0, 0, 0, 9, 0, 0, 0, 9}));
  EXPECT_EQ(values(mutated("shear:angle=-45", image)), (std::vector<int>{0, 0, 9, 0, 9, 0, 9, 0, 0}));
}

// An independent program: OpenCV, which rounds positions to 1/32 pixel.
TEST(Geometry, AgreesWithOpenCV) {
  at::Tensor image = at::empty({1, 30, 41}, at::kByte);
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 41; ++x)
      image[0][y][x] = static_cast<int>(120 + 60 * std::sin(x / 5.0) + 60 * std::cos(y / 4.0));
  }
  cv::Mat from(30, 41, CV_8UC1, image.data_ptr());
  for (double angle : {-30.0, -7.0, 13.0, 29.0, 77.0}) {
    cv::Mat turned;
    cv::warpAffine(from, turned, cv::getRotationMatrix2D({20.0F, 14.5F}, angle, 1), from.size());
    at::Tensor ours = mutated("rotation:angle=" + std::to_string(angle), image);
    cv::Mat difference;
    cv::absdiff(turned, cv::Mat(30, 41, CV_8UC1, ours.data_ptr()), difference);
    EXPECT_LT(cv::mean(difference)[0], 1) << angle;
    // Where the border's zero begins, 1/32 pixel is worth up to eight levels.
    double largest = 0;
    cv::minMaxLoc(difference, nullptr, &largest);
    EXPECT_LE(largest, 10) << angle;
  }
}

TEST(Geometry, AConstantImageStaysConstantInside) {
  at::Tensor image = at::full({3, 40, 40}, 201, at::kByte);
  for (const char* rule : {"rotation:angle=17", "shear:angle=20", "scale:ratio=1.13"}) {
    at::Tensor inside = mutated(rule, image).slice(1, 15, 25).slice(2, 15, 25);
    EXPECT_EQ(inside.min().item<int>(), 201) << rule;
    EXPECT_EQ(inside.max().item<int>(), 201) << rule;
  }
}

}  // namespace
}  // namespace galvani
