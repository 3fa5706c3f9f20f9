#include "galvani/model/card.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/files.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;

TEST(Preprocess, ByHand) {
  Preprocess p;
  p.low = -1;
  p.high = 1;
  p.mean = {0.5, 0, 0};
  p.deviation = {2, 1, 1};
  at::Tensor image = at::zeros({1, 3, 1, 1}, at::kByte);
  image[0][0][0][0] = 255;
  at::Tensor x = p.apply(image);
  EXPECT_NEAR(x[0][0][0][0].item<float>(), (1 - 0.5) / 2, 1e-6);
  EXPECT_NEAR(x[0][1][0][0].item<float>(), -1, 1e-6);
  p.bgr = true;  // the model's first channel is blue: the image's third
  EXPECT_NEAR(p.apply(image)[0][2][0][0].item<float>(), 1, 1e-6);
  p.channels_last = true;
  EXPECT_EQ(p.apply(at::zeros({2, 3, 4, 5}, at::kByte)).sizes().vec(), (std::vector<std::int64_t>{2, 4, 5, 3}));
}

TEST(Preprocess, SoundsByHand) {
  Preprocess p;
  p.mean = {0.5};
  p.deviation = {2};
  at::Tensor sound = at::tensor({-32768, 0, 16384}, at::kShort).view({1, 1, 3});
  at::Tensor expected = at::tensor({-0.75F, -0.25F, 0.0F}).view({1, 1, 3});
  EXPECT_TRUE(at::allclose(p.apply(sound), expected, 0, 1e-6));
  EXPECT_TRUE(at::allclose(p.pull_back(at::ones({1, 1, 3})), at::full({1, 1, 3}, 0.5 / 32768)));
  p.channels_last = true;
  EXPECT_EQ(p.apply(at::zeros({2, 3, 5}, at::kShort)).sizes().vec(), (std::vector<std::int64_t>{2, 5, 3}));
}

TEST(Preprocess, PullBackIsTheTransposeOfApply) {
  Preprocess p;
  p.mean = {0.1, 0.2, 0.3};
  p.deviation = {0.5, 0.25, 2};
  p.bgr = true;
  p.channels_last = true;
  at::Tensor a = at::rand({2, 3, 4, 5}) * 255;
  at::Tensor b = at::rand({2, 3, 4, 5}) * 255;
  at::Tensor g = at::randn({2, 4, 5, 3});
  auto forward = ((p.apply(a) - p.apply(b)) * g).sum().item<double>();
  auto backward = ((a - b) * p.pull_back(g)).sum().item<double>();
  EXPECT_NEAR(forward, backward, 1e-3 * (1 + std::abs(forward)));
}

TEST(Card, SurvivesJson) {
  ModelCard card;
  card.preprocess.mean = {0.1};
  card.preprocess.bgr = true;
  card.class_names = {"cat", "dog"};
  card.accuracy = 0.9;
  card.intake = {Intake::Resize::short_side, 256, 224};
  EXPECT_EQ(ModelCard::from_json(card.to_json(), "x").intake.str(), "short side to 256, centre 224x224");
  EXPECT_EQ(ModelCard::from_json(card.to_json(), "x").to_json(), card.to_json());
}

TEST(Card, BadCardsAreRefusedByName) {
  for (const char* text : {"", "[]", R"({"mean": "x"})", R"({"range": [1, 0]})", R"({"layout": "nwhc"})",
                           R"({"input": [1, 3, 8, 8]})", R"({"resize": "big"})", R"({"crop": 0})"})
    EXPECT_EQ(error_of([&] { ModelCard::from_json(text, "m.onnx"); }).rfind("m.onnx", 0), 0U) << text;
}

TEST(Card, TomlOverrides) {
  TemporaryFolder folder;
  write_file(folder / "m.toml", "mean = [0.5, 0.4, 0.3]\nchannels = \"bgr\"\naccuracy = 0.75\n");
  ModelCard card;
  card.override_with_toml(folder / "m.toml");
  EXPECT_EQ(card.preprocess.mean.size(), 3U);
  EXPECT_TRUE(card.preprocess.bgr);
  EXPECT_TRUE(card.preprocess_known);
  write_file(folder / "m.toml", "resize = \"pad\"\n");
  card.override_with_toml(folder / "m.toml");
  EXPECT_EQ(card.intake.resize_text(), "pad");
  write_file(folder / "m.toml", "resize = 256\ncrop = 224\n");
  card.override_with_toml(folder / "m.toml");
  EXPECT_EQ(card.intake.resize_text(), "256");
  EXPECT_EQ(card.intake.crop, 224);
  write_file(folder / "m.toml", "meen = [0.5]\n");
  EXPECT_NE(error_of([&] { card.override_with_toml(folder / "m.toml"); }).find("no key 'meen'"), std::string::npos);
  write_file(folder / "m.toml", "mean = [0.5\n");
  EXPECT_NE(error_of([&] { card.override_with_toml(folder / "m.toml"); }).find("line "), std::string::npos);
}

TEST(Card, FlagsWin) {
  ModelCard card;
  CardFlags flags;
  flags.range = "-1..1";
  flags.mean = ".5,.4,.3";
  flags.input = "3,8,8";
  flags.apply_to(card);
  EXPECT_EQ(card.preprocess.low, -1);
  EXPECT_EQ(card.preprocess.mean[2], 0.3);
  EXPECT_EQ(card.input, (std::vector<std::int64_t>{3, 8, 8}));
  flags.resize = "exact";
  flags.classes = "a,b b";
  flags.apply_to(card);
  EXPECT_EQ(card.intake.resize_text(), "exact");
  EXPECT_EQ(card.class_names, (std::vector<std::string>{"a", "b b"}));
  flags.classes = "a, b\r\nc\n";
  flags.apply_to(card);
  EXPECT_EQ(card.class_names, (std::vector<std::string>{"a, b", "c"}));
  flags.resize = "7x7";
  EXPECT_NE(error_of([&] { flags.apply_to(card); }).find("--resize is '7x7'"), std::string::npos);
  flags.resize.clear();
  flags.range = "1";
  EXPECT_NE(error_of([&] { flags.apply_to(card); }).find("--range"), std::string::npos);
  EXPECT_NE(error_of([&] { check(card.preprocess, 1, "m"); }).find("3 means for 1 channel"), std::string::npos);
}

}  // namespace
}  // namespace galvani
