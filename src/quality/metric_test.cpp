// Every metric on small examples worked out by hand; docs/quality.md has the same ones.
#include "galvani/quality/metric.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"
#include "quality/pictures.h"
#include "quality/testing.h"

namespace galvani {
namespace {

using Bytes = std::vector<int>;

at::Tensor image_of(const Bytes& values, std::int64_t channels, std::int64_t height, std::int64_t width) {
  return at::tensor(values, at::kInt).to(at::kByte).view({1, channels, height, width});
}

// Images that the model takes for class 1 and that show class 0, unless something else is said.
TestBatch batch_of(const at::Tensor& tests, const at::Tensor& originals) {
  std::int64_t n = tests.size(0);
  TestBatch batch;
  batch.type = SampleType::image(tests.size(1), tests.size(2), tests.size(3));
  batch.tests = tests;
  batch.originals = originals;
  batch.labels = at::zeros({n}, at::kLong);
  batch.verdicts = at::ones({n}, at::kLong);
  return batch;
}

double value_of(const std::string& spec, const TestBatch& batch, Network* network = nullptr) {
  std::vector<double> all = make_metric(Spec::parse(spec))->values(batch, network);
  double sum = 0, n = 0;
  for (double value : all) {
    if (std::isnan(value)) continue;
    sum += value;
    n += 1;
  }
  return sum / n;
}

double of_pair(const std::string& spec, const Bytes& original, const Bytes& test, std::int64_t channels,
               std::int64_t height, std::int64_t width) {
  return value_of(spec, batch_of(image_of(test, channels, height, width), image_of(original, channels, height, width)));
}

// Four tests of class 0 with probabilities of three classes: the first is right, the last has no scores.
TestBatch four_tests() {
  at::Tensor images = at::zeros({4, 1, 1, 2}, at::kByte);
  TestBatch batch = batch_of(images, images);
  batch.probabilities = at::tensor({.7, .2, .1, .25, .6, .15, .4, .1, .5, NAN, NAN, NAN}, at::kFloat).view({4, 3});
  batch.verdicts = at::tensor({0, 1, 2, -1}, at::kLong);
  batch.original_verdicts = at::tensor({0, 0, 2, 0}, at::kLong);
  return batch;
}

TEST(Rates, ByHand) {
  EXPECT_DOUBLE_EQ(value_of("mr", four_tests()), 3.0 / 4);
  // The third original was wrong as it was; of the other three tests two are misclassified.
  EXPECT_DOUBLE_EQ(value_of("asr", four_tests()), 2.0 / 3);
  TestCounts counts{200, 30, 20, 5};
  auto share = make_metric(Spec::parse("mr"))->counted(counts);
  EXPECT_EQ(share->part, 30);
  EXPECT_EQ(share->whole, 200);
  share = make_metric(Spec::parse("asr"))->counted(counts);
  EXPECT_EQ(share->part, 5);
  EXPECT_EQ(share->whole, 20);
  EXPECT_FALSE(make_metric(Spec::parse("acac"))->counted(counts));
}

TEST(Confidence, ByHand) {
  EXPECT_NEAR(value_of("acac", four_tests()), (.6 + .5) / 2, 1e-7);
  EXPECT_NEAR(value_of("actc", four_tests()), (.25 + .4) / 2, 1e-7);
  EXPECT_NEAR(value_of("nte", four_tests()), ((.6 - .25) + (.5 - .4)) / 2, 1e-7);
}

TEST(Distortion, ByHand) {
  // x = (3, 4), δ = (0, 5): one of two pixels, 5/5, 5/4.
  EXPECT_DOUBLE_EQ(of_pair("ald0", {3, 4}, {3, 9}, 1, 1, 2), 0.5);
  EXPECT_DOUBLE_EQ(of_pair("ald2", {3, 4}, {3, 9}, 1, 1, 2), 1);
  EXPECT_DOUBLE_EQ(of_pair("aldinf", {3, 4}, {3, 9}, 1, 1, 2), 1.25);
  // A colour pixel is one pixel, however many of its channels changed.
  EXPECT_DOUBLE_EQ(of_pair("ald0", {1, 2, 1, 2, 1, 2}, {9, 2, 9, 2, 1, 2}, 3, 1, 2), 0.5);
}

// 250 → 10 is a change of 240; bytes that wrap around would make it 16.
TEST(Distortion, DifferencesDoNotWrapAround) {
  EXPECT_DOUBLE_EQ(of_pair("aldinf", {250}, {10}, 1, 1, 1), 240.0 / 250);
  EXPECT_DOUBLE_EQ(of_pair("aldinf", {10}, {250}, 1, 1, 1), 24);
  EXPECT_DOUBLE_EQ(of_pair("ald2", {250}, {10}, 1, 1, 1), 240.0 / 250);
  EXPECT_DOUBLE_EQ(of_pair("psd", {250}, {10}, 1, 1, 1), 240);
  // Of 16-bit sounds, too: -30000 → 30000.
  TestBatch batch;
  batch.type = SampleType::audio(1, 1, 8000);
  batch.tests = at::full({1, 1, 1}, 30000, at::kShort);
  batch.originals = at::full({1, 1, 1}, -30000, at::kShort);
  batch.labels = at::zeros({1}, at::kLong);
  batch.verdicts = at::ones({1}, at::kLong);
  EXPECT_DOUBLE_EQ(value_of("aldinf", batch), 2);
  EXPECT_DOUBLE_EQ(value_of("ald2", batch), 2);
}

// Nothing is a share of an image without any light.
TEST(Distortion, BlackOriginalsHaveNone) {
  EXPECT_TRUE(std::isnan(of_pair("ald2", {0, 0}, {0, 9}, 1, 1, 2)));
  EXPECT_TRUE(std::isnan(of_pair("aldinf", {0, 0}, {0, 9}, 1, 1, 2)));
  EXPECT_DOUBLE_EQ(of_pair("ald0", {0, 0}, {0, 9}, 1, 1, 2), 0.5);
}

// Even planes differ in brightness alone: (2·0·10 + C1)/(0² + 10² + C1) with C1 = 2.55² = 6.5025. For a data range of 1
// it would be a millionth.
TEST(Similarity, BrightnessByHand) {
  EXPECT_NEAR(of_pair("ass", Bytes(144, 0), Bytes(144, 10), 1, 12, 12), 6.5025 / 106.5025, 1e-12);
  EXPECT_NEAR(of_pair("ass", Bytes(144, 7), Bytes(144, 7), 1, 12, 12), 1, 1e-12);
}

// Columns 0, 10, 20 against 20, 10, 0: one window of 3x3 with weights .30780, .38440, .30780 across, variance
// 2·.30780·100 = 61.560, covariance -61.560, equal means: (C2 - 123.12)/(C2 + 123.12) with C2 = 7.65² = 58.5225.
TEST(Similarity, StructureByHand) {
  EXPECT_NEAR(of_pair("ass", {0, 10, 20, 0, 10, 20, 0, 10, 20}, {20, 10, 0, 20, 10, 0, 20, 10, 0}, 1, 3, 3),
              -0.35563176337, 1e-10);
}

// A pattern of 13x17, compared window by window with a program of its own (no separable sums, deviations from the
// mean).
TEST(Similarity, IndependentComputation) {
  Bytes a, b;
  for (int y = 0; y < 13; ++y) {
    for (int x = 0; x < 17; ++x) {
      a.push_back((7 * y * y + 13 * x + 5 * x * y) % 256);
      b.push_back((a.back() + ((x + 2 * y) % 5 == 0 ? 40 : 0)) % 256);
    }
  }
  EXPECT_NEAR(of_pair("ass", a, b, 1, 13, 17), 0.9280682269708368, 1e-10);
  // Three channels, of which two are equal.
  Bytes three_a = a, three_b = b;
  for (int i = 0; i < 2; ++i) {
    three_a.insert(three_a.end(), a.begin(), a.end());
    three_b.insert(three_b.end(), a.begin(), a.end());
  }
  EXPECT_NEAR(of_pair("ass", three_a, three_b, 3, 13, 17), (0.9280682269708368 + 2) / 3, 1e-10);
}

// One row 0, 0, 255. The first value's neighbourhood is 0, 0: the least deviation, one grey level, so a change of 51
// counts 51. The last one's is 0, 255: deviation 0.5, so the same change, 0.2, counts 0.4.
TEST(Sensitivity, ByHand) {
  EXPECT_NEAR(of_pair("psd", {0, 0, 255}, {51, 0, 255}, 1, 1, 3), 51, 1e-12);
  EXPECT_NEAR(of_pair("psd", {0, 0, 255}, {0, 0, 204}, 1, 1, 3), 0.4, 1e-12);
  EXPECT_NEAR(of_pair("psd", {0, 0, 255}, {51, 0, 204}, 1, 1, 3), 51.4, 1e-12);
  // In the middle of 3x3 with one light corner: deviation √(1/9 - 1/81) = √8/9.
  EXPECT_NEAR(of_pair("psd", {255, 0, 0, 0, 0, 0, 0, 0, 0}, {255, 0, 0, 0, 51, 0, 0, 0, 0}, 1, 3, 3),
              0.2 * 9 / std::sqrt(8.0), 1e-12);
}

// Rows are rows: two rows of four, the lower one light at the left. Read with height and width exchanged the
// neighbourhood of the upper right value would hold the light one.
TEST(Sensitivity, AxesAreNotExchanged) {
  EXPECT_NEAR(of_pair("psd", {0, 0, 0, 0, 255, 0, 0, 0}, {0, 0, 0, 51, 255, 0, 0, 0}, 1, 2, 4), 51, 1e-12);
  // Of the value below it, 0 and 255 among four: deviation √3/4.
  EXPECT_NEAR(of_pair("psd", {0, 0, 0, 0, 255, 0, 0, 0}, {51, 0, 0, 0, 255, 0, 0, 0}, 1, 2, 4),
              0.2 * 4 / std::sqrt(3.0), 1e-12);
  // Channels are no neighbours: an even plane beside one that varies.
  EXPECT_NEAR(of_pair("psd", {9, 9, 0, 255, 9, 9}, {60, 9, 0, 255, 9, 9}, 3, 1, 2), 51, 1e-12);
}

// Weights of the blur: exp(-2i²), .00026 .10645 .78657 .10645 .00026.
TEST(Pictures, BlurByHand) {
  at::Tensor found = blurred(image_of({0, 0, 200, 0, 0}, 1, 1, 5), 0.5);
  EXPECT_TRUE(found.equal(image_of({0, 21, 157, 21, 0}, 1, 1, 5)));
  EXPECT_TRUE(blurred(at::full({1, 3, 4, 5}, 77, at::kByte), 0.5).equal(at::full({1, 3, 4, 5}, 77, at::kByte)));
  // The border's values go on outside: 200·(.78657 + .10645 + .00026).
  EXPECT_TRUE(blurred(image_of({200, 0, 0}, 1, 1, 3), 0.5).equal(image_of({179, 21, 0}, 1, 1, 3)));
}

// A slope survives quality 90 nearly unchanged, and quality 1 not at all.
TEST(Pictures, Compression) {
  Bytes slope;
  for (int i = 0; i < 64; ++i) slope.push_back(40 + (i % 8) * 20 + (i / 8) * 3);
  at::Tensor image = image_of(slope, 1, 8, 8);
  auto error = [&](std::int64_t quality) {
    return (compressed(image, quality).to(at::kInt) - image.to(at::kInt)).abs().max().item<int>();
  };
  EXPECT_LE(error(90), 6);
  EXPECT_GT(error(1), 30);
  EXPECT_EQ(quality_metrics().options(Spec::parse("ric")).integer("quality"), 90);
  EXPECT_EQ(quality_metrics().options(Spec::parse("rgb")).real("radius"), 0.5);
  // Red stays red.
  at::Tensor red = at::zeros({1, 3, 8, 8}, at::kByte);
  red.select(1, 0).fill_(200);
  at::Tensor found = compressed(red, 90);
  EXPECT_GT(found.select(1, 0).min().item<int>(), 190);
  EXPECT_LT(found.select(1, 2).max().item<int>(), 12);
}

// A model that says class 1 where the fifth value of the first row is above 0.7: what a blur takes away from a dot.
TEST(StillWrongTest, ByHand) {
  at::Tensor weight = at::zeros({64, 2});
  weight[4][0] = -1;
  weight[4][1] = 1;
  auto network = testing::linear_network({1, 8, 8}, weight, at::tensor({0.7, -0.7}));
  at::Tensor tests = at::zeros({2, 1, 8, 8}, at::kByte);
  tests[0].fill_(255);      // even: neither blur nor compression changes it
  tests[1][0][0][4] = 200;  // .784; blurred, 200·.78657·(.78657 + .10645) = 140: .551
  TestBatch batch = batch_of(tests, at::zeros_like(tests));
  Predictions said = predict(*network, tests);
  batch.verdicts = said.labels;
  batch.probabilities = said.probabilities;
  EXPECT_DOUBLE_EQ(value_of("mr", batch), 1);
  EXPECT_DOUBLE_EQ(value_of("rgb", batch, network.get()), 0.5);
  EXPECT_DOUBLE_EQ(value_of("rgb:radius=0.1", batch, network.get()), 1);
  EXPECT_DOUBLE_EQ(value_of("ric:quality=1", batch, network.get()), 0.5);
  EXPECT_DOUBLE_EQ(value_of("ric", batch, network.get()), 1);
}

// A dense layer's features are what goes into it: here the two pixels.
TEST(FeatureSimilarityTest, ByHand) {
  at::Tensor weight = at::tensor({-1.0, 1.0, 0.5, -0.5}).view({2, 2});
  auto network = testing::linear_network({1, 1, 2}, weight, at::zeros({2}));
  TestBatch batch = batch_of(image_of({30, 40}, 1, 1, 2), image_of({40, 30}, 1, 1, 2));
  batch.probabilities = at::full({1, 2}, 0.5);
  EXPECT_NEAR(value_of("afs", batch, network.get()), 24.0 / 25, 1e-6);
  batch.tests = image_of({80, 60}, 1, 1, 2);
  EXPECT_NEAR(value_of("afs", batch, network.get()), 1, 1e-6);
  // Another network's features, whose penultimate layer is not the model's.
  TemporaryFolder folder;
  testing::small_network()->save(folder / "reference.onnx");
  std::string other = "afs:features=" + (folder / "reference.onnx").string();
  EXPECT_THROW(value_of(other, batch, network.get()), Error);  // images of two pixels are none of a LeNet's
  EXPECT_THROW(make_metric(Spec::parse("afs:features=" + (folder / "none.onnx").string())), Error);
  auto lenet = testing::small_network();
  at::Tensor images = testing::noise_images(*lenet, 2);
  TestBatch of_lenet = batch_of(images.narrow(0, 0, 1), images.narrow(0, 1, 1));
  of_lenet.probabilities = at::full({1, 10}, 0.1);
  auto pixels = testing::linear_network({1, 28, 28}, at::ones({784, 10}), at::zeros({10}));
  double by_lenet = value_of("afs", of_lenet, lenet.get());
  EXPECT_NEAR(value_of(other, of_lenet, pixels.get()), by_lenet, 1e-6);
  EXPECT_GT(std::abs(value_of("afs", of_lenet, pixels.get()) - by_lenet), 1e-3);
}

// The laws every metric keeps: the registry is the list.
class MetricContract : public ::testing::TestWithParam<std::string> {
 protected:
  static TestBatch some_tests(Network& network) {
    at::Tensor tests = testing::noise_images(network, 7);
    at::Tensor originals = testing::noise_images(network, 8).slice(0, 1);
    TestBatch batch = batch_of(tests, originals.contiguous());
    Predictions said = predict(network, tests);
    batch.verdicts = said.labels;
    batch.probabilities = said.probabilities;
    batch.original_verdicts = predict(network, originals).labels;
    batch.labels = said.labels.clone();
    for (std::int64_t i : {1, 2, 5}) batch.labels[i] = (said.labels[i] + 1).remainder(10);
    return batch;
  }
};

TEST_P(MetricContract, OneByOneOrTogetherAndWithAnyNumberOfWorkers) {
  auto network = testing::small_network();
  TestBatch batch = some_tests(*network);
  auto metric = make_metric(Spec::parse(GetParam()));
  std::vector<double> all = metric->values(batch, network.get());
  ASSERT_EQ(all.size(), 7u);
  set_workers(3);
  std::vector<double> again = metric->values(batch, network.get());
  for (std::int64_t i = 0; i < 7; ++i) {
    auto at = static_cast<std::size_t>(i);
    double one = metric->values(batch.rows({i}), network.get())[0];
    EXPECT_EQ(std::isnan(all[at]), std::isnan(one));
    EXPECT_EQ(std::isnan(all[at]), std::isnan(again[at]));
    if (std::isnan(one)) continue;
    EXPECT_NEAR(all[at], one, 1e-6);
    EXPECT_EQ(all[at], again[at]);
  }
}

TEST_P(MetricContract, LooksAtMisclassifiedTestsAloneUnlessItSaysOtherwise) {
  auto network = testing::small_network();
  TestBatch batch = some_tests(*network);
  auto metric = make_metric(Spec::parse(GetParam()));
  std::vector<double> all = metric->values(batch, network.get());
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool wrong = i == 1 || i == 2 || i == 5;
    EXPECT_TRUE(metric->traits().of_all || std::isnan(all[i]) == !wrong) << i;
  }
  EXPECT_FALSE(metric->help().empty());
  EXPECT_EQ(make_metric(Spec::parse(metric->spec()))->spec(), metric->spec());
}

INSTANTIATE_TEST_SUITE_P(All, MetricContract, ::testing::ValuesIn(quality_metrics().names()));

TEST(MetricList, IsChecked) {
  EXPECT_EQ(make_metrics("", SampleKind::image).size(), quality_metrics().names().size());
  EXPECT_LT(make_metrics("", SampleKind::audio).size(), quality_metrics().names().size());
  EXPECT_EQ(make_metrics("mr,ric:quality=75,ric", SampleKind::image).size(), 3u);
  EXPECT_THROW(make_metrics("mr,mr", SampleKind::image), Error);
  EXPECT_THROW(make_metrics("ass", SampleKind::audio), Error);
  EXPECT_THROW(make_metrics("ric:quality=0", SampleKind::image), Error);
  EXPECT_THROW(make_metrics("acacc", SampleKind::image), Error);
}

}  // namespace
}  // namespace galvani
