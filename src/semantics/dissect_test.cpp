#include "semantics/dissect.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/semantics/descriptions.h"
#include "semantics/ranking.h"
#include "semantics/testing.h"

namespace galvani {
namespace {

Descriptions described(Network& network, const Dataset& data, const std::string& describer) {
  DataView view(data);
  Exemplars exemplars = find_exemplars(network, network.select_taps("default"), view);
  return describe(*make_describer(Spec::parse(describer)), {network, exemplars, view, 0});
}

bool says(const DescribedNeuron& neuron, const std::string& word) {
  return neuron.words.find(word) != std::string::npos;
}

// What a neuron was made for is what is said of it.
TEST(Dissect, PlantedNeuronsAreNamed) {
  auto network = testing::planted_network();
  Descriptions found = described(*network, testing::scenes(400, 1), "dissect");
  ASSERT_EQ(found.layers.size(), 2U);
  const std::vector<DescribedNeuron>& planted = found.layers[0].neurons;
  EXPECT_TRUE(says(planted[0], "red")) << planted[0].words;
  EXPECT_TRUE(says(planted[1], "vertical edges with the bright side right")) << planted[1].words;
  EXPECT_TRUE(says(planted[2], "horizontal edges with the bright side below")) << planted[2].words;
  EXPECT_TRUE(says(planted[3], "blue")) << planted[3].words;
  EXPECT_TRUE(says(planted[4], "top left")) << planted[4].words;
  EXPECT_TRUE(says(planted[5], "never active")) << planted[5].words;
  for (int n = 0; n < 5; ++n) {
    EXPECT_TRUE(planted[static_cast<std::size_t>(n)].sure);
    EXPECT_LT(planted[static_cast<std::size_t>(n)].p, 0.01);
    EXPECT_GT(planted[static_cast<std::size_t>(n)].score, 0.04);
  }
  // No place is said of what is everywhere.
  for (int n : {0, 1, 2, 3}) EXPECT_FALSE(says(planted[static_cast<std::size_t>(n)], "top left"));
  const std::vector<DescribedNeuron>& classes = found.layers[1].neurons;
  EXPECT_EQ(classes[0].words, "warm pictures");
  EXPECT_EQ(classes[1].words, "cold pictures");
}

// One neuron for each colour, direction and place, in scenes that have them all. How many are named as they were made
// is the table of docs/semantics.md.
TEST(Dissect, ABankOfPlantedNeurons) {
  auto network = testing::planted_bank();
  Dataset data = testing::bank_scenes();
  std::vector<std::string> wanted = testing::bank_words();
  constexpr std::size_t kEnds[] = {7, 15, 24};
  for (const char* describer : {"dissect", "formula"}) {
    Descriptions found = described(*network, data, describer);
    const std::vector<DescribedNeuron>& neurons = found.layers[0].neurons;
    ASSERT_EQ(neurons.size(), wanted.size());
    int right[] = {0, 0, 0};
    std::string wrong;
    for (std::size_t n = 0; n < wanted.size(); ++n) {
      std::size_t kind = n < kEnds[0] ? 0 : n < kEnds[1] ? 1 : 2;
      bool named = says(neurons[n], wanted[n]);
      right[kind] += named ? 1 : 0;
      if (!named) wrong += wanted[n] + ": " + neurons[n].words + "; ";
    }
    std::string said = fmt::format("{}: {} of 7 colours, {} of 8 directions, {} of 9 places; {}", describer, right[0],
                                   right[1], right[2], wrong);
    RecordProperty(describer, said);
    EXPECT_GE(right[0], 6) << said;
    EXPECT_GE(right[1], 6) << said;
    EXPECT_GE(right[2], 8) << said;
  }
}

// Pictures without anything in common with what the neurons see: nothing is sure.
TEST(Dissect, NoiseIsNotNamed) {
  auto network = testing::planted_network();
  Dataset data = testing::scenes(200, 1);
  Rng rng(3);
  for (std::int64_t i = 0; i < data.images.numel(); ++i)
    data.images.data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(rng.below(256));
  Descriptions found = described(*network, data, "dissect");
  for (std::size_t n : {0U, 1U}) EXPECT_FALSE(found.layers[1].neurons[n].sure) << found.layers[1].neurons[n].words;
}

TEST(Dissect, SameForAnyNumberOfWorkers) {
  auto network = testing::planted_network();
  Dataset data = testing::scenes(120, 1);
  std::string one = described(*network, data, "dissect").to_json();
  set_workers(3);
  std::string three = described(*network, data, "dissect").to_json();
  set_workers(2);
  EXPECT_EQ(one, three);
}

TEST(Formula, PlantedNeuronsAreNamed) {
  auto network = testing::planted_network();
  Descriptions found = described(*network, testing::scenes(400, 1), "formula");
  const std::vector<DescribedNeuron>& planted = found.layers[0].neurons;
  EXPECT_TRUE(says(planted[0], "red")) << planted[0].words;
  EXPECT_TRUE(says(planted[1], "vertical edges")) << planted[1].words;
  EXPECT_TRUE(says(planted[2], "horizontal edges")) << planted[2].words;
  EXPECT_TRUE(says(planted[3], "blue")) << planted[3].words;
  EXPECT_TRUE(says(planted[4], "top left")) << planted[4].words;
  EXPECT_TRUE(says(planted[5], "never active")) << planted[5].words;
  EXPECT_TRUE(says(found.layers[1].neurons[0], "warm pictures")) << found.layers[1].neurons[0].words;
  EXPECT_EQ(found.layers[1].neurons[0].figure, "AUROC");
  // A formula of one concept is what dissection has as its best.
  Descriptions one = described(*network, testing::scenes(400, 1), "formula:length=1");
  EXPECT_EQ(one.layers[0].neurons[0].words, "red areas");
  for (std::size_t n = 0; n < 5; ++n) EXPECT_GE(planted[n].score, one.layers[0].neurons[n].score);
}

TEST(Descriptions, AFileOfAnotherModelOrADamagedOneIsRefused) {
  auto network = testing::planted_network();
  Descriptions found = described(*network, testing::scenes(60, 1), "dissect");
  TemporaryFolder folder;
  found.save(folder / "a.json");
  Descriptions loaded = Descriptions::load(folder / "a.json", *network);
  EXPECT_EQ(loaded.to_json(), found.to_json());
  EXPECT_EQ(loaded.sha256(), found.sha256());
  std::string text = read_file(folder / "a.json");
  auto refused = [&](const std::string& bytes) {
    write_file(folder / "b.json", bytes);
    return testing::error_of([&] { Descriptions::load(folder / "b.json", *network); });
  };
  EXPECT_NE(refused(text.substr(0, text.size() / 2)).find("cut short"), std::string::npos);
  EXPECT_NE(refused("{}"), "");
  EXPECT_NE(refused("[1]"), "");
  EXPECT_NE(refused(""), "");
  found.model = "another";
  EXPECT_NE(refused(found.to_json()).find("another model"), std::string::npos);
  found.model = network->identity();
  found.layers[0].neurons.pop_back();
  EXPECT_NE(refused(found.to_json()).find("no layer"), std::string::npos);
  std::string wrong = loaded.to_json();
  wrong.replace(wrong.find("\"sure\""), 6, "\"suru\"");
  EXPECT_NE(refused(wrong).find("damaged"), std::string::npos);
}

TEST(Ranking, Separation) {
  // Pairs (inside, outside): 3>1, 3>2, 3<4; 2.5>1, 2.5>2, 2.5<4: four of six.
  std::vector<float> values = {3, 1, 2.5, 2, 4};
  std::vector<char> inside = {1, 0, 1, 0, 0};
  EXPECT_NEAR(separation(values, ascending(values), inside).auroc, 4.0 / 6, 1e-12);
  std::vector<float> same(5, 1);
  EXPECT_NEAR(separation(same, ascending(same), inside).auroc, 0.5, 1e-12);
  EXPECT_EQ(separation(same, ascending(same), inside).p, 1);
  // The two largest are 4 and 3, of which one is inside: 1 of 3.
  EXPECT_NEAR(matched_overlap(ascending(values), inside), 1.0 / 3, 1e-12);
  EXPECT_NEAR(upper_tail(1.959963985), 0.025, 1e-9);
}

}  // namespace
}  // namespace galvani
