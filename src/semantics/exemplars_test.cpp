#include "galvani/semantics/exemplars.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "semantics/testing.h"

namespace galvani {
namespace {

struct Case {
  std::unique_ptr<Network> network = testing::planted_network();
  Dataset data = testing::scenes(90, 1);
  std::vector<int> taps = network->select_taps("default");
};

// Everything that one pass found, worked out again with all values in memory.
TEST(Exemplars, AreTheMostActivatingInputs) {
  Case c;
  Exemplars found = find_exemplars(*c.network, c.taps, c.data);
  ASSERT_EQ(found.layers.size(), 2U);
  EXPECT_EQ(found.inputs, 90);
  Request request;
  request.taps = c.taps;
  request.form = TapForm::full;
  Outputs outputs = c.network->run(c.data.images, request);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const ExemplarLayer& from = found.layers[layer];
    at::Tensor values = by_neuron(outputs.taps[layer], c.network->taps()[static_cast<std::size_t>(c.taps[layer])]);
    at::Tensor peaks = std::get<0>(values.max(2));
    for (std::int64_t neuron = 0; neuron < from.neurons; ++neuron) {
      std::vector<std::pair<float, std::int64_t>> sorted;
      for (std::int64_t i = 0; i < 90; ++i) sorted.emplace_back(-peaks[i][neuron].item<float>(), i);
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t place = 0; place < 15; ++place) {
        std::size_t at = static_cast<std::size_t>(neuron) * 15 + place;
        EXPECT_EQ(from.rows[at], sorted[place].second);
        EXPECT_EQ(from.peaks[at], -sorted[place].first);
        at::Tensor map = values[sorted[place].second][neuron].view({from.height, from.width});
        EXPECT_TRUE(at::equal(from.maps[neuron][static_cast<std::int64_t>(place)], map.to(at::kHalf)));
        EXPECT_TRUE(at::equal(found.image(from.rows[at]), c.data.images[from.rows[at]]));
      }
      at::Tensor all = values.select(1, neuron).flatten();
      double above = (all > from.threshold[static_cast<std::size_t>(neuron)]).sum().item<double>() /
                     static_cast<double>(all.numel());
      EXPECT_DOUBLE_EQ(from.above[static_cast<std::size_t>(neuron)], above);
      EXPECT_LE(above, 0.01);
    }
  }
  EXPECT_TRUE(found.layers[0].dead(5));
  EXPECT_FALSE(found.layers[0].dead(0));
}

TEST(Exemplars, SameForAnyNumberOfWorkersAndInAFile) {
  Case c;
  Exemplars one = find_exemplars(*c.network, c.taps, c.data);
  set_workers(3);
  Exemplars three = find_exemplars(*c.network, c.taps, c.data);
  set_workers(2);
  TemporaryFolder folder;
  one.save(folder / "a");
  three.save(folder / "b");
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
  Exemplars loaded = Exemplars::load(folder / "a", *c.network);
  loaded.save(folder / "c");
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "c"));
  EXPECT_TRUE(at::equal(loaded.mask(0, 0, 0), one.mask(0, 0, 0)));
  // What is red is in the mask.
  at::Tensor mask = one.mask(0, 0, 0);
  at::Tensor red = one.image(one.layers[0].rows[0])[0].masked_select(mask).to(at::kFloat);
  EXPECT_GT(red.numel(), 0);
  EXPECT_GT(red.min().item<float>(), 150);
}

TEST(Exemplars, BadFilesAreRefused) {
  Case c;
  Exemplars found = find_exemplars(*c.network, c.taps, c.data);
  TemporaryFolder folder;
  found.save(folder / "a");
  std::string bytes = read_file(folder / "a");
  write_file(folder / "cut", std::string_view(bytes).substr(0, bytes.size() / 2));
  EXPECT_NE(testing::error_of([&] { Exemplars::load(folder / "cut", *c.network); }), "");
  found.model = "another";
  found.save(folder / "other");
  EXPECT_NE(testing::error_of([&] { Exemplars::load(folder / "other", *c.network); }).find("another model"),
            std::string::npos);
}

TEST(ChooseLayers, NumbersAndNames) {
  Case c;
  EXPECT_EQ(choose_layers(*c.network, "5").size(), 1U);  // one convolution
  EXPECT_EQ(choose_layers(*c.network, "default").size(), 2U);
  EXPECT_NE(testing::error_of([&] { choose_layers(*c.network, "0"); }), "");
  EXPECT_NE(testing::error_of([&] { choose_layers(*c.network, "nowhere"); }), "");
}

}  // namespace
}  // namespace galvani
