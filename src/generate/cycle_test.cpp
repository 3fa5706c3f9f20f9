#include "galvani/generate/cycle.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <csignal>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/data/image.h"
#include "galvani/model/translator.h"

namespace galvani {
namespace {

CycleOptions tiny() {
  CycleOptions options;
  options.translator = "resnet:width=4,blocks=1";
  options.critic_width = 4;
  options.epochs = 2;
  options.epoch_images = 20;
  options.batch = 8;
  options.micro_batch = 4;
  options.replay = 6;
  options.optimizer = "adam:lr=0.002,beta1=0.5";
  return options;
}

std::map<std::string, at::Tensor> weights_of(const Network& network) {
  std::map<std::string, at::Tensor> all;
  for (const NamedParameter& parameter : network.parameters()) all[parameter.name] = network.parameter(parameter.name);
  return all;
}

bool same(const Network& a, const Network& b) {
  auto left = weights_of(a), right = weights_of(b);
  if (left.size() != right.size()) return false;
  for (const auto& [name, value] : left) {
    if (!at::equal(value, right.at(name))) return false;
  }
  return true;
}

class CycleTest : public ::testing::Test {
 protected:
  CycleResult train(const CycleOptions& options) const { return train_cycle(x_, y_, x_, options, {quiet}); }
  static void quiet(const CycleEpoch&, Network&) {}

  Dataset x_ = load_data("digits:train[0:30]");
  Dataset y_ = load_data("digits:train[30:50]");
};

TEST_F(CycleTest, SameSeedSameWeightsWhateverTheThreads) {
  CycleResult once = train(tiny());
  int before = workers().size();
  set_workers(before == 1 ? 3 : 1);
  CycleResult again = train(tiny());
  set_workers(before);
  EXPECT_TRUE(same(*once.network, *again.network));
  ASSERT_EQ(once.epochs.size(), 2U);
  EXPECT_EQ(once.epochs[1].cycle, again.epochs[1].cycle);
  CycleOptions other = tiny();
  other.seed = 1;
  EXPECT_FALSE(same(*once.network, *train(other).network));
  other = tiny();
  other.adversarial = "log";
  EXPECT_FALSE(same(*once.network, *train(other).network));
}

TEST_F(CycleTest, LearnsTheWayBack) {
  CycleOptions options = tiny();
  options.epochs = 6;
  options.epoch_images = 64;
  CycleResult result = train(options);
  EXPECT_LT(result.epochs.back().cycle, 0.8 * result.epochs.front().cycle);
  EXPECT_GT(result.epochs.back().figures.similarity, result.epochs.front().figures.similarity);
  EXPECT_LT(result.epochs.back().rate, result.epochs.front().rate);
  // What is saved gives the same examples elsewhere.
  TemporaryFolder folder;
  result.network->save(folder / "aeg.onnx");
  Network::Options how;
  how.any_output = true;
  how.execution = result.network->execution();
  auto loaded = Network::load(folder / "aeg.onnx", how);
  EXPECT_EQ(loaded->card().preprocess.low, -1);
  Application awake;
  awake.random = RandomLayers{5, 0};
  std::vector<char> domains(30, 0);
  for (std::size_t i = 1; i < 30; i += 3) domains[i] = 1;
  EXPECT_TRUE(at::equal(ImageToImage(*loaded).make(x_.images, domains, awake).examples,
                        ImageToImage(*result.network).make(x_.images, domains, awake).examples));
}

// CAGFuzz eq. 4: Q(P(x)) of the first domain, P(Q(y)) of the second.
TEST_F(CycleTest, ImagesOfTheSecondDomainGoTheOtherWay) {
  Dataset threes = load_data("digits:train[class=3][0:20]"), eights = load_data("digits:train[class=8][0:20]");
  CycleOptions options = tiny();
  options.epochs = 1;
  CycleResult result = train_cycle(threes, eights, threes, options, quiet);
  ImageToImage translator(*result.network);
  ASSERT_TRUE(translator.two_ways());
  EXPECT_EQ(result.network->card().first_domain, std::vector<std::string>{"3"});
  EXPECT_EQ(result.network->card().second_domain, std::vector<std::string>{"8"});
  EXPECT_EQ(result.told_apart, 1);
  Dataset both = load_data("digits:test[class=3,8][0:12]");
  std::vector<char> domains = translator.domains(both.images, class_names_of(both));
  ImageToImage::Made made = translator.make(both.images, domains, Application());
  std::vector<at::Tensor> values = result.network->apply(both.images);
  for (std::int64_t i = 0; i < both.size(); ++i) {
    bool three = both.labels[i].item<std::int64_t>() == 3;
    EXPECT_EQ(domains[static_cast<std::size_t>(i)], three ? 0 : 1);
    at::Tensor example = (values[three ? 0 : 2][i] + 1) * 127.5, on_the_way = (values[three ? 1 : 3][i] + 1) * 127.5;
    EXPECT_TRUE(at::allclose(made.examples[i], example, 1e-3, 1e-2)) << i;
    EXPECT_TRUE(at::allclose(made.transformed[i], on_the_way, 1e-3, 1e-2)) << i;
    EXPECT_FALSE(at::allclose(values[0][i], values[2][i], 1e-3, 1e-2));
  }
}

TEST_F(CycleTest, WithoutClassesTheNearerMeanTells) {
  Dataset dark = x_, bright = y_;
  bright.images = (255 - y_.images).contiguous();
  CycleOptions options = tiny();
  options.epochs = 0;
  CycleResult result = train_cycle(dark, bright, dark, options, quiet);
  EXPECT_TRUE(result.network->card().first_domain.empty());
  EXPECT_EQ(result.told_apart, 1);
  ImageToImage translator(*result.network);
  at::Tensor images = at::stack({dark.images[3], bright.images[3], bright.images[5]});
  EXPECT_EQ(translator.domains(images, {}), (std::vector<char>{0, 1, 1}));
}

// What a row draws is its own, whoever is in the other domain.
TEST_F(CycleTest, DrawsOfARowDoNotDependOnTheDomainsOfOthers) {
  CycleOptions options = tiny();
  options.epochs = 0;
  CycleResult result = train_cycle(x_, y_, x_, options, quiet);
  ImageToImage translator(*result.network);
  Application awake;
  awake.random = RandomLayers{5, 40};
  std::vector<char> one(30, 0), other(30, 0);
  for (std::size_t i = 0; i < 29; ++i) other[i] = 1;
  at::Tensor a = translator.make(x_.images, one, awake).examples[29];
  at::Tensor b = translator.make(x_.images, other, awake).examples[29];
  EXPECT_TRUE(at::allclose(a, b, 1e-3, 1e-2));
  awake.random->first_row = 41;
  EXPECT_FALSE(at::allclose(translator.make(x_.images, other, awake).examples[29], b, 1e-3, 1e-2));
}

TEST_F(CycleTest, AGeneratorOfAnEarlierBuildIsRefused) {
  Network::Options how;
  how.any_output = true;
  TranslatorRequest request{{1, 28, 28, 2}, {"p."}, Rng(2)};
  auto network =
      Network::from_onnx(translators().create(Spec::parse("resnet:width=4,blocks=1"), request), "old.onnx", how);
  EXPECT_NO_THROW(ImageToImage{*network});
  ModelCard card = network->card();
  card.architecture = "cycle of resnet:width=4,blocks=1,dropout=0.2";
  network->set_card(card);
  try {
    ImageToImage translator(*network);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("train it again"), std::string::npos) << e.what();
  }
}

TEST_F(CycleTest, AnInterruptedTrainingEndsWithTheSameWeights) {
  CycleResult whole = train(tiny());
  TemporaryFolder folder;
  CycleOptions options = tiny();
  options.checkpoint = folder / "c";
  EXPECT_THROW(
      train_cycle(x_, y_, x_, options, [](const CycleEpoch&, Network&) { fail(ErrorCode::interrupted, "now"); }),
      Error);
  std::vector<bool> past;
  CycleResult resumed =
      train_cycle(x_, y_, x_, options, [&](const CycleEpoch& epoch, Network&) { past.push_back(epoch.past); });
  EXPECT_TRUE(resumed.resumed);
  EXPECT_TRUE(same(*whole.network, *resumed.network));
  EXPECT_EQ(resumed.epochs.size(), 2U);
  options.cycle = 5;
  try {
    train(options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("cycle = 10"), std::string::npos) << e.what();
  }
}

TEST_F(CycleTest, RefusesDomainsOfUnlikeSize) {
  Dataset wide = y_;
  wide.images = at::zeros({4, 1, 28, 30}, at::kByte);
  wide.name = "wide";
  EXPECT_THROW(train_cycle(x_, wide, x_, tiny(), quiet), Error);
}

TEST(Domains, HalvesAreAllOfItOnce) {
  Dataset data = load_data("digits:test[0:11]");
  DomainRows rows = domain_splits().create(Spec::parse("halves"), data, Rng(1));
  EXPECT_EQ(rows.first.size(), 5U);
  EXPECT_EQ(rows.second.size(), 6U);
  std::vector<std::int64_t> all = rows.first;
  all.insert(all.end(), rows.second.begin(), rows.second.end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i));
  EXPECT_NE(domain_splits().create(Spec::parse("halves"), data, Rng(2)).first, rows.first);
}

TEST(Domains, PairsAreTwoClasses) {
  Dataset data = load_data("digits:test[0:40]");
  DomainRows rows = domain_splits().create(Spec::parse("pair:a=3,b=8"), data, Rng(1));
  EXPECT_EQ(rows.first.size(), 4U);
  EXPECT_EQ(rows.second.size(), 4U);
  for (std::int64_t row : rows.first) EXPECT_EQ(data.labels[row].item<std::int64_t>(), 3);
  for (std::int64_t row : rows.second) EXPECT_EQ(data.labels[row].item<std::int64_t>(), 8);
  EXPECT_THROW(domain_splits().create(Spec::parse("pair:a=3,b=11"), data, Rng(1)), Error);
  EXPECT_THROW(domain_splits().create(Spec::parse("pair:a=3,b=3"), data, Rng(1)), Error);
}

TEST(Domains, ClustersFindWhatIsApart) {
  Dataset data = load_data("digits:test[0:20]");
  // Every third image in negative: two clusters that no drawing of centres can miss.
  for (std::int64_t i = 0; i < 20; i += 3) data.images[i].copy_(255 - data.images[i]);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    DomainRows rows = domain_splits().create(Spec::parse("clusters"), data, Rng(seed));
    const std::vector<std::int64_t>& fewer = rows.first.size() < rows.second.size() ? rows.first : rows.second;
    ASSERT_EQ(fewer.size(), 7U) << seed;
    for (std::int64_t row : fewer) EXPECT_EQ(row % 3, 0);
  }
}

class ExamplesTest : public ::testing::Test {
 protected:
  static bool complains(const ExampleFigures& figures, const std::string& word) {
    std::vector<std::string> all = complaints(figures);
    return std::any_of(all.begin(), all.end(), [&](const std::string& s) { return s.find(word) != std::string::npos; });
  }
  at::Tensor images_ = load_data("digits:test[0:12]").images;
};

TEST_F(ExamplesTest, TheIdentityIsNamed) {
  ExampleFigures figures = measure_examples(images_, images_, images_, images_);
  EXPECT_EQ(figures.similarity, 1);
  EXPECT_EQ(figures.unchanged, 1);
  EXPECT_EQ(figures.change, 0);
  EXPECT_EQ(figures.variety, 0);
  EXPECT_NEAR(figures.spread, 1, 1e-6);
  EXPECT_TRUE(complains(figures, "identity"));
  EXPECT_TRUE(complains(figures, "differ by"));
  EXPECT_FALSE(complains(figures, "collapsed"));
}

TEST_F(ExamplesTest, ACollapseIsNamed) {
  at::Tensor one = images_.narrow(0, 0, 1).expand_as(images_).contiguous();
  ExampleFigures figures = measure_examples(images_, one, one, one);
  EXPECT_EQ(figures.spread, 0);
  EXPECT_TRUE(complains(figures, "collapsed"));
}

TEST_F(ExamplesTest, FiguresByHand) {
  at::Tensor black = at::zeros({2, 1, 4, 4}, at::kByte);
  at::Tensor white = at::full({2, 1, 4, 4}, 200).to(at::kByte);
  at::Tensor originals = at::cat({black.narrow(0, 0, 1), white.narrow(0, 0, 1)});
  at::Tensor examples = originals.clone();
  examples[0][0][0][0] = 16;  // one pixel of 32 by 16 levels
  ExampleFigures figures = measure_examples(originals, white, examples, originals);
  EXPECT_NEAR(figures.change, 0.5, 1e-6);
  EXPECT_NEAR(figures.variety, 0.5, 1e-6);
  EXPECT_NEAR(figures.unchanged, 0.5, 1e-6);
  EXPECT_EQ(figures.spread, 0);
  EXPECT_EQ(figures.quantiles[4], 1);
  EXPECT_LT(figures.quantiles[0], 1);
}

TEST_F(ExamplesTest, SheetsAreWritten) {
  TemporaryFolder folder;
  at::Tensor changed = 255 - images_;
  write_example_sheet(images_, changed, images_, "digits", folder / "sheet.png");
  at::Tensor page = decode_image_tensor(read_file(folder / "sheet.png"), "sheet");
  // Four groups of four tiles of twice the size, three rows.
  EXPECT_EQ(page.sizes(), (std::vector<std::int64_t>{3, 44 + 3 * 60 + 4, 24 + 4 * (4 * 60 - 4 + 24)}));
  at::Tensor first = page.narrow(1, 44, 56).narrow(2, 24, 56)[0];
  EXPECT_TRUE(at::equal(first.slice(0, 0, 56, 2).slice(1, 0, 56, 2), images_[0][0]));
}

TEST_F(ExamplesTest, AClassifierIsNoGenerator) {
  Rng rng(1);
  Network::Options how;
  how.any_output = true;
  auto classifier =
      Network::from_onnx(architectures().create(Spec::parse("lenet1"), {1, 28, 28, 10}, rng), "lenet1", how);
  EXPECT_THROW(ImageToImage{*classifier}, Error);
}

}  // namespace
}  // namespace galvani
