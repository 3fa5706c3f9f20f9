#include "semantics/caption/captioner.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/data/npy.h"
#include "galvani/semantics/captioner.h"
#include "galvani/semantics/descriptions.h"
#include "semantics/caption/scenes.h"
#include "semantics/testing.h"

namespace galvani {
namespace {

CaptionerOptions tiny_options() {
  CaptionerOptions options;
  options.neurons = 60;
  options.count = 4;
  options.epochs = 2;
  options.embedding = options.hidden = options.attention = options.language = 16;
  options.held_out = 0.2;
  return options;
}

TEST(Scenes, SentencesStateTheirTruth) {
  SceneTruth truth = {0, 1, -1, 2};
  EXPECT_EQ(scene_sentence(truth), "red striped areas at the top right");
  EXPECT_EQ(scene_truth(scene_sentence(truth)), truth);
  EXPECT_EQ(scene_truth("something else"), (SceneTruth{-1, -1, -1, -1}));
  EXPECT_EQ(scene_truth("black vertical strokes at the top"), (SceneTruth{9, -1, 5, 1}));
  for (std::uint64_t i = 0; i < 200; ++i) {
    SceneNeuron neuron = draw_neuron(1, Rng(3).derive(i));
    EXPECT_EQ(scene_truth(neuron.sentence), neuron.truth) << neuron.sentence;
  }
}

// What is said to be red is red, and what is said to be at the top left is there.
TEST(Scenes, PicturesShowWhatIsSaid) {
  int red = 0;
  int top_left = 0;
  for (std::uint64_t i = 0; i < 120; ++i) {
    SceneNeuron neuron = draw_neuron(12, Rng(4).derive(i));
    at::Tensor masks = neuron.masks.unsqueeze(1);
    at::Tensor area = masks.sum({2, 3});
    if (neuron.truth[0] == 0) {
      ++red;
      at::Tensor colour = std::get<0>(((neuron.images.to(at::kFloat) * masks).sum({2, 3}) / area).median(0));
      EXPECT_GT(colour[0].item<float>(), 1.3F * colour[1].item<float>()) << neuron.sentence;
      EXPECT_GT(colour[0].item<float>(), 1.3F * colour[2].item<float>()) << neuron.sentence;
    }
    if (neuron.truth[3] == 0) {
      ++top_left;
      at::Tensor steps = at::arange(kSceneSide, at::kFloat);
      at::Tensor across = (neuron.masks.sum(1) * steps).sum(1) / area.squeeze(1);
      at::Tensor down = (neuron.masks.sum(2) * steps).sum(1) / area.squeeze(1);
      EXPECT_LT(across.median().item<float>(), 12) << neuron.sentence;
      EXPECT_LT(down.median().item<float>(), 12) << neuron.sentence;
    }
  }
  EXPECT_GT(red, 1);
  EXPECT_GT(top_left, 1);
  EXPECT_TRUE(at::equal(draw_neuron(3, Rng(4)).images, draw_neuron(3, Rng(4)).images));
}

TEST(Annotator, SumsWhatIsUnderTheMask) {
  Annotator annotator;
  // Two maps of our own: the left half, and everything.
  auto maps = annotator.see(at::full({3, kSceneSide, kSceneSide}, 128, at::kByte)).size(0);
  at::Tensor seen = at::zeros({1, maps, kSceneSide, kSceneSide});
  seen[0][0].narrow(1, 0, kSceneSide / 2).fill_(1);
  seen[0][1].fill_(1);
  at::Tensor mask = at::zeros({1, kSceneSide, kSceneSide});
  mask[0].narrow(0, 0, 8).narrow(1, 8, 16).fill_(1);  // half of it on the left
  at::Tensor found = annotator.annotate(seen.flatten(2), mask.flatten(1));
  ASSERT_EQ(found.sizes(), (std::vector<std::int64_t>{1, annotator.width()}));
  EXPECT_NEAR(found[0][0].item<double>(), 0.5, 1e-5);
  EXPECT_NEAR(found[0][1].item<double>(), 1, 1e-5);
  EXPECT_NEAR(found[0][maps].item<double>(), (512.0 - 64) / (1024 - 128), 1e-5);  // around it
  at::Tensor grey = Annotator::fitted(at::full({1, 28, 28}, 200, at::kByte));
  EXPECT_EQ(grey.sizes(), (std::vector<std::int64_t>{3, kSceneSide, kSceneSide}));
  EXPECT_EQ(grey.min().item<int>(), 200);
}

TEST(CaptionWordsTest, WordsAndNumbers) {
  CaptionWords words = CaptionWords::of({"red discs", "red areas", "blue discs red"});
  EXPECT_EQ(words.words(), (std::vector<std::string>{"red", "discs", "areas", "blue"}));
  EXPECT_EQ(words.encode("blue unheard discs"), (std::vector<std::int64_t>{kFirstWord + 3, kFirstWord + 1}));
  EXPECT_EQ(words.decode(words.encode("red blue areas")), "red blue areas");
}

TEST(Bleu, WorkedOutByHand) {
  EXPECT_DOUBLE_EQ(bleu({{1, 2, 3, 4, 5}}, {{1, 2, 3, 4, 5}}), 1);
  // 4/5 words, 3/4 pairs, 2/3 triples, 1/2 quadruples: the fourth root of their product.
  EXPECT_NEAR(bleu({{1, 2, 3, 4, 6}}, {{1, 2, 3, 4, 5}}), std::pow(0.2, 0.25), 1e-12);
  EXPECT_NEAR(bleu({{1, 2, 3}}, {{1, 2, 3, 4}}), 0, 1e-12) << "no quadruple is there";
  EXPECT_NEAR(bleu({{1}, {1, 2}}, {{1}, {1, 2}}), 1, 1e-12);
  EXPECT_NEAR(bleu({{1}}, {{1, 1}}), 0, 1e-12) << "no pair is there";
  EXPECT_EQ(bleu({{7, 7}}, {{1, 2}}), 0);
}

struct DecoderCase {
  DecoderSizes sizes{5, 6, 4, 8, 8, 8};
  Weights decoder = CaptionDecoder::draw(sizes, Rng(1));
  Weights language = LanguageModel::draw(sizes, Rng(1));
  at::Tensor annotations = at::arange(18, at::kFloat).view({3, 6}).sin();
};

TEST(CaptionDecoder, TheLossIsTheLikelihood) {
  DecoderCase c;
  at::Tensor sentences = sentence_rows({{3, 4}, {4, 4, 3}});
  at::Tensor both = c.annotations.unsqueeze(0).expand({2, -1, -1});
  at::Tensor likelihood = caption_likelihood(c.decoder, both, sentences);
  at::Tensor loss = CaptionDecoder::loss(c.decoder, both, sentences, 0, 0, Rng(0));
  EXPECT_NEAR(loss.item<double>(), -likelihood.sum().item<double>(), 1e-4);
  // A row says the same alone, where nothing is padded.
  at::Tensor alone = caption_likelihood(c.decoder, c.annotations.unsqueeze(0), sentence_rows({{3, 4}}));
  EXPECT_NEAR(alone[0].item<double>(), likelihood[0].item<double>(), 1e-5);
}

// No sentence of up to four words is likelier than the best of a wide beam.
TEST(CaptionDecoder, ABeamFindsTheLikeliest) {
  DecoderCase c;
  std::vector<Caption> found = search_captions(c.decoder, c.language, c.annotations, 200, 0, 0);
  ASSERT_EQ(found.size(), 200U);
  std::vector<std::vector<std::int64_t>> all = {{}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == 4) break;
    for (std::int64_t word : {3, 4}) {
      all.push_back(all[i]);
      all.back().push_back(word);
    }
  }
  all.erase(all.begin());
  ASSERT_EQ(all.size(), 30U);
  at::Tensor rows = sentence_rows(all);
  at::Tensor likelihood = caption_likelihood(c.decoder, c.annotations.unsqueeze(0).expand({30, -1, -1}), rows);
  EXPECT_GE(found[0].likelihood + 1e-5, likelihood.max().item<double>());
  at::Tensor best = caption_likelihood(c.decoder, c.annotations.unsqueeze(0), sentence_rows({found[0].words}));
  EXPECT_NEAR(best[0].item<double>(), found[0].likelihood, 1e-4);
  // What is usual counts against a sentence.
  std::vector<Caption> ranked = search_captions(c.decoder, c.language, c.annotations, 20, 0.5, 0.7);
  for (const Caption& caption : ranked) EXPECT_NEAR(caption.score, caption.likelihood - 0.5 * caption.usual, 1e-9);
  EXPECT_GE(ranked[0].likelihood, found[0].likelihood - 0.7 - 1e-6);
  // Whatever its likelihood is, if it may be.
  std::vector<Caption> any = search_captions(c.decoder, c.language, c.annotations, 20, 0.5, 1e6);
  for (const Caption& caption : any) EXPECT_GE(any[0].score, caption.score);
}

TEST(Captioner, SameSeedSameFileForAnyNumberOfThreads) {
  TemporaryFolder folder;
  set_workers(1);
  CaptionerTraining one = train_captioner(tiny_options(), folder / "one");
  set_workers(3);
  CaptionerTraining three = train_captioner(tiny_options(), folder / "three");
  set_workers(2);
  EXPECT_EQ(one.bleu, three.bleu);
  EXPECT_EQ(one.held_out, 12);
  EXPECT_EQ(one.attributes.size(), kSceneAttributes);
  EXPECT_EQ(read_file(folder / "one"), read_file(folder / "three"));
  CaptionerOptions other = tiny_options();
  other.seed = 1;
  train_captioner(other, folder / "other");
  EXPECT_NE(read_file(folder / "one"), read_file(folder / "other"));
}

TEST(Captioner, DescribesEveryNeuronAndRefusesBadFiles) {
  TemporaryFolder folder;
  train_captioner(tiny_options(), folder / "words");
  auto network = testing::planted_network();
  Dataset data = testing::scenes(30, 1);
  DataView view(data);
  Exemplars exemplars = find_exemplars(*network, network->select_taps("default"), view);
  auto describer = make_describer(Spec::parse("captioner:chance=19,file=" + (folder / "words").string()));
  Descriptions found = describe(*describer, {*network, exemplars, view, 0});
  for (const DescribedLayer& layer : found.layers) {
    for (const DescribedNeuron& neuron : layer.neurons) EXPECT_FALSE(neuron.words.empty());
  }
  EXPECT_EQ(found.layers[0].neurons[5].words, "nothing (never active)");
  std::string bytes = read_file(folder / "words");
  auto refused = [&](const std::string& content) {
    write_file(folder / "bad", content);
    return testing::error_of([&] { make_describer(Spec::parse("captioner:file=" + (folder / "bad").string())); });
  };
  EXPECT_NE(refused(bytes.substr(0, bytes.size() / 2)).find("bad"), std::string::npos);
  EXPECT_NE(refused("text"), "");
  EXPECT_NE(refused(sealed_bytes("captioner", 99, "")), "");
  EXPECT_NE(refused(sealed_bytes("exemplars", 1, "")), "");
  EXPECT_NE(refused(sealed_bytes("captioner", 1, std::string(40, '\x01'))), "");
  EXPECT_NE(testing::error_of([] { make_describer(Spec::parse("captioner")); }).find("train-captioner"),
            std::string::npos);
}

// Neurons that people described, as MILAN's files have them.
TEST(Captioner, LearnsFromAFolder) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "layer1");
  std::vector<at::Tensor> images, masks;
  std::string csv = "layer,unit,summary\n";
  for (std::uint64_t i = 0; i < 30; ++i) {
    SceneNeuron neuron = draw_neuron(3, Rng(7).derive(i));
    images.push_back(neuron.images);
    masks.push_back(neuron.masks.unsqueeze(1));
    csv += "layer1," + std::to_string(i) + ",\"" + neuron.sentence + ".\"\n";
  }
  write_npy(folder / "layer1/images.npy", at::stack(images));
  write_npy(folder / "layer1/masks.npy", at::stack(masks));
  write_file(folder / "annotations.csv", csv);
  CaptionerOptions options = tiny_options();
  options.folder = folder.path();
  options.count = 3;
  CaptionerTraining found = train_captioner(options, folder / "words");
  EXPECT_EQ(found.neurons + found.held_out, 30);
  EXPECT_TRUE(found.attributes.empty());
  auto refused = [&] { return testing::error_of([&] { train_captioner(options, folder / "words"); }); };
  write_file(folder / "annotations.csv", csv + "layer1,30,discs\n");
  EXPECT_NE(refused().find("unit 30"), std::string::npos);
  write_file(folder / "annotations.csv", csv + "../layer1,0,discs\n");
  EXPECT_NE(refused(), "");
  write_file(folder / "annotations.csv", "layer,unit\n");
  EXPECT_NE(refused().find("summary"), std::string::npos);
  write_file(folder / "annotations.csv", csv);
  options.count = 4;
  EXPECT_NE(refused().find("--count"), std::string::npos);
  options.count = 3;
  write_npy(folder / "layer1/masks.npy", at::zeros({2, 2}));
  EXPECT_NE(refused().find("masks.npy"), std::string::npos);
}

}  // namespace
}  // namespace galvani
