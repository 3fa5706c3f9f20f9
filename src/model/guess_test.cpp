#include "galvani/model/guess.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "galvani/base/files.h"
#include "galvani/base/rng.h"
#include "model/onnx/test_graph.h"
#include "model/testing.h"

namespace galvani {
namespace {

using testing::error_of;

constexpr std::int64_t kColours = 60;
constexpr std::int64_t kOfEach = 5;
constexpr std::int64_t kSide = 4;

// Plain images of colours that are far enough from each other, a little off.
Dataset colours(std::int64_t channels) {
  Rng rng(7);
  Dataset data;
  data.name = "colours";
  std::vector<at::Tensor> images;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < kColours * kOfEach; ++i) {
    std::int64_t k = i / kOfEach;
    at::Tensor image = at::empty({channels, kSide, kSide}, at::kByte);
    for (std::int64_t c = 0; c < channels; ++c) {
      std::int64_t level =
          channels == 1 ? 4 * k
                        : static_cast<std::int64_t>(
                              Rng(3).derive({static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(c)}).below(251));
      image[c].fill_(level + static_cast<std::int64_t>(rng.below(2)));
    }
    images.push_back(image);
    labels.push_back(k);
  }
  data.images = at::stack(images);
  data.labels = at::tensor(labels, at::kLong);
  return data;
}

// Gives the colour that is nearest in what `p` makes of images: 2·q·x - q², the x being means of planes.
std::string nearest_colour(const Dataset& data, const Preprocess& p) {
  std::int64_t channels = data.channels();
  at::Tensor middle = data.images.view({kColours, kOfEach, channels, kSide, kSide}).to(at::kFloat).mean({1});
  at::Tensor prepared = p.apply(middle);
  at::Tensor q = p.channels_last ? prepared.mean({1, 2}) : prepared.mean({2, 3});  // [colours, channels]
  onnx::TestGraph g;
  g.input("x", p.channels_last ? std::vector<std::int64_t>{-1, kSide, kSide, channels}
                               : std::vector<std::int64_t>{-1, channels, kSide, kSide});
  auto& mean = g.node("ReduceMean", {"x"}, {"means"});
  onnx::TestGraph::set(mean, "axes",
                       p.channels_last ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{2, 3});
  onnx::TestGraph::set(mean, "keepdims", 0);
  g.weight("w", (2 * q).t().contiguous());
  g.weight("b", -q.pow(2).sum(1));
  g.node("Gemm", {"means", "w", "b"}, {"y"}, "nearest");
  g.output("y");
  return g.bytes();
}

PreprocessGuess guess_of(const std::string& bytes, const Dataset& data, const CardFlags& flags = {}) {
  GuessSource source{[&](const std::string& layout) {
                       Network::Options options;
                       options.flags = flags;
                       options.flags.layout = layout;
                       options.data_shape = data.type().shape;
                       options.execution = {16, false};
                       return Network::from_onnx(bytes, "colours.onnx", options);
                     },
                     [&](const Network&) { return DataView(data); }};
  return guess_preprocessing(source, flags);
}

PreprocessGuess guess_for(const Dataset& data, const Preprocess& p, const CardFlags& flags = {}) {
  return guess_of(nearest_colour(data, p), data, flags);
}

TEST(Guess, FindsEveryPreset) {
  for (std::int64_t channels : {1, 3}) {
    Dataset data = colours(channels);
    for (const PreprocessPreset& preset : preprocess_presets(channels)) {
      PreprocessGuess guess = guess_for(data, preset.preprocess);
      EXPECT_EQ(guess.images, kColours * kOfEach);
      EXPECT_EQ(guess.scores.size(), preprocess_presets(channels).size());
      EXPECT_EQ(guess.scores[0].name, preset.name);
      EXPECT_EQ(guess.scores[0].preprocess.str(), preset.preprocess.str());
      EXPECT_EQ(guess.scores[0].accuracy, 1) << preset.name;
      EXPECT_EQ(guess.tied(), 0) << preset.name;
      EXPECT_TRUE(guess.better_than_chance);
      EXPECT_FALSE(guess.graph_takes_bytes);
      for (std::size_t i = 1; i < guess.scores.size(); ++i)
        EXPECT_LE(guess.scores[i].accuracy, guess.scores[i - 1].accuracy);
    }
  }
}

TEST(Guess, FindsTheLayoutThatTheGraphTakes) {
  Dataset data = colours(3);
  Preprocess last = preprocess_presets(3)[1].preprocess;
  last.channels_last = true;
  EXPECT_EQ(guess_for(data, last).scores[0].preprocess.str(), last.str());
}

TEST(Guess, TriesWhatIsStatedAndKeepsToTheOrderThatIsGiven) {
  Dataset data = colours(3);
  Preprocess odd;
  odd.low = -3;
  odd.high = 5;
  odd.bgr = true;
  CardFlags flags;
  flags.range = "-3..5";
  flags.channels = "bgr";
  PreprocessGuess guess = guess_for(data, odd, flags);
  EXPECT_EQ(guess.scores[0].name, "as stated");
  EXPECT_EQ(guess.scores[0].accuracy, 1);
  EXPECT_EQ(guess.scores.size(), 1 + preprocess_presets(3).size() / 2);
  for (const PresetScore& score : guess.scores) EXPECT_TRUE(score.preprocess.bgr) << score.name;
}

// Of 10 images 8 are right: (0.8 + 0.19207 ± 1.96 · sqrt(0.016 + 0.0096036)) / 1.38415, by hand.
TEST(Guess, IntervalsAndTies) {
  Dataset data = colours(1).subset({0, 5, 10, 15, 20, 25, 30, 35, 40, 45});
  data.labels[8] = 59;
  data.labels[9] = 58;
  Dataset all = colours(1);
  std::string bytes = nearest_colour(all, preprocess_presets(1)[0].preprocess);
  PreprocessGuess guess = guess_of(bytes, data);
  EXPECT_EQ(guess.scores[0].name, "0..1");
  EXPECT_EQ(guess.scores[0].correct, 8);
  EXPECT_NEAR(guess.scores[0].low, 0.49016, 1e-4);
  EXPECT_NEAR(guess.scores[0].high, 0.94332, 1e-4);
  EXPECT_EQ(guess.scores[0].p, 1);
  EXPECT_FALSE(guess.scores[0].tied);
  // Another one is right where this one is wrong, once: seven wins and a loss give 2·(1 + 8)/2^8.
  EXPECT_NEAR(guess.scores[1].p, 18.0 / 256, 1e-9);
  EXPECT_TRUE(guess.scores[1].tied);
  PreprocessGuess few = guess_of(bytes, data.subset({2, 3, 4}));
  EXPECT_EQ(few.scores[0].correct, 3);
  EXPECT_NEAR(few.scores[1].p, 0.25, 1e-9) << "three wins of three: 2/2^3";
  EXPECT_TRUE(few.scores[1].tied);
  EXPECT_EQ(few.tied(), static_cast<std::int64_t>(few.scores.size()) - 1);
}

// Bright is class 1: 10·(mean - 0.5). With -1..1 two images of level 140 are right that 0..1 gets wrong by a hair, and
// one of level 150 is wrong by far: right once more often, and a larger loss.
TEST(Guess, LossDecidesBetweenAccuraciesThatAreClose) {
  onnx::TestGraph g;
  g.input("x", {-1, 2, kSide, kSide});  // of two channels there are few presets
  auto& mean = g.node("ReduceMean", {"x"}, {"means"});
  onnx::TestGraph::set(mean, "axes", std::vector<std::int64_t>{2, 3});
  onnx::TestGraph::set(mean, "keepdims", 0);
  g.weight("w", at::tensor({0.0F, 5.0F, 0.0F, 5.0F}).view({2, 2}));
  g.weight("b", at::tensor({0.0F, -5.0F}));
  g.node("Gemm", {"means", "w", "b"}, {"y"}, "bright");
  g.output("y");
  std::vector<std::pair<int, std::int64_t>> levels = {{140, 0}, {140, 0}, {150, 1}};
  for (int i = 0; i < 10; ++i) levels.insert(levels.end(), {{20, 0}, {230, 1}});
  Dataset data;
  data.name = "levels";
  std::vector<at::Tensor> images;
  std::vector<std::int64_t> labels;
  for (auto [level, label] : levels) {
    images.push_back(at::full({2, kSide, kSide}, level, at::kByte));
    labels.push_back(label);
  }
  data.images = at::stack(images);
  data.labels = at::tensor(labels, at::kLong);
  PreprocessGuess guess = guess_of(g.bytes(), data);
  EXPECT_EQ(guess.scores[0].name, "0..1");
  EXPECT_EQ(guess.scores[0].correct, 21);
  EXPECT_EQ(guess.scores[1].name, "-1..1");
  EXPECT_EQ(guess.scores[1].correct, 22);
  EXPECT_LT(guess.scores[0].loss, guess.scores[1].loss);
  EXPECT_EQ(guess.scores[1].p, 1) << "two of three coin tosses";
}

TEST(Guess, AGraphThatScalesItsInputTakesBytes) {
  // (0, 20 x / 255 - 0.01): right of 0..1, too, for what is black, but in 0..255 an image with a wrong label costs
  // more.
  onnx::TestGraph g;
  g.input("x", {-1, 1, kSide, kSide});
  g.weight("full", at::tensor({255.0F}));
  g.node("Div", {"x", "full"}, {"unit"});
  auto& mean = g.node("ReduceMean", {"unit"}, {"means"});
  onnx::TestGraph::set(mean, "axes", std::vector<std::int64_t>{2, 3});
  onnx::TestGraph::set(mean, "keepdims", 0);
  g.weight("w", at::tensor({0.0F, 20.0F}).view({1, 2}));
  g.weight("b", at::tensor({0.0F, -0.01F}));
  g.node("Gemm", {"means", "w", "b"}, {"y"}, "bright");
  g.output("y");
  Dataset data;
  data.name = "levels";
  std::vector<at::Tensor> images;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 20; ++i) {
    images.push_back(at::full({1, kSide, kSide}, i % 2 == 0 ? 0 : 250, at::kByte));
    labels.push_back(i < 2 ? 0 : i % 2);
  }
  data.images = at::stack(images);
  data.labels = at::tensor(labels, at::kLong);
  PreprocessGuess guess = guess_of(g.bytes(), data);
  EXPECT_TRUE(guess.graph_takes_bytes);
  EXPECT_EQ(guess.scores[0].name, "0..255");
  auto unit = std::find_if(guess.scores.begin(), guess.scores.end(), [](auto& score) { return score.name == "0..1"; });
  ASSERT_NE(unit, guess.scores.end());
  EXPECT_EQ(unit->correct, guess.scores[0].correct);
  EXPECT_LT(unit->loss, guess.scores[0].loss);
}

TEST(Guess, LabelsOfOtherClassesAreNoBetterThanChance) {
  Dataset data = colours(1);
  data.labels = (data.labels * 7 + 3).remainder(kColours);
  PreprocessGuess guess = guess_for(data, preprocess_presets(1)[0].preprocess);
  EXPECT_FALSE(guess.better_than_chance);
  EXPECT_EQ(guess.label_shift, 0);
  EXPECT_NE(guess.labels.find("the order of the classes is another"), std::string::npos) << guess.labels;
}

TEST(Guess, LabelsThatAreOffByOneAreCountedSo) {
  Dataset data = colours(1);
  std::string network = nearest_colour(data, preprocess_presets(1)[1].preprocess);
  std::int64_t left = data.size() - kOfEach;
  data.images = data.images.narrow(0, kOfEach, left);
  data.labels = data.labels.narrow(0, kOfEach, left) - 1;
  PreprocessGuess guess = guess_of(network, data);
  EXPECT_EQ(guess.label_shift, 1);
  EXPECT_TRUE(guess.better_than_chance);
  EXPECT_EQ(guess.scores[0].name, "-1..1");
  EXPECT_EQ(guess.scores[0].accuracy, 1);
  EXPECT_EQ(guess.labels, "");
}

TEST(Guess, RefusesWhatItCannotMeasure) {
  Dataset data = colours(1);
  data.labels[3] = Labelled::kUnlabelled;
  EXPECT_NE(error_of([&] { guess_for(data, {}); }).find("colours: has images without a label"), std::string::npos);
}

TEST(EvenSample, TakesAsManyOfEveryClass) {
  Labelled data;
  data.labels = at::tensor({0, 0, 0, 0, 0, 0, 1, 2, 2, 2}, at::kLong);
  EXPECT_EQ(even_sample(data, 5), (std::vector<std::int64_t>{0, 3, 6, 7, 8}));
  EXPECT_EQ(even_sample(data, 2), (std::vector<std::int64_t>{0, 6}));
  EXPECT_EQ(even_sample(data, 100).size(), 10U);
}

TEST(CardBeside, IsReadAgainAndNeverOverwritten) {
  TemporaryFolder folder;
  Preprocess wanted = preprocess_presets(3).back().preprocess;
  wanted.channels_last = true;
  write_card_beside(folder / "m.onnx", wanted, "found", -1);
  ModelCard card;
  card.override_with_toml(folder / "m.toml");
  EXPECT_EQ(card.preprocess.str(), wanted.str());
  EXPECT_TRUE(card.preprocess_known);
  EXPECT_EQ(card.label_shift, -1);
  EXPECT_NE(error_of([&] { write_card_beside(folder / "m.onnx", {}, "again"); }).find("is not overwritten"),
            std::string::npos);
  write_file(folder / "n.onnx.toml", "");
  EXPECT_NE(error_of([&] { refuse_card_beside(folder / "n.onnx"); }).find("n.onnx.toml exists"), std::string::npos);
}

}  // namespace
}  // namespace galvani
