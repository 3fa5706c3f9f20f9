#include "galvani/mutate/engine.h"

#include <gtest/gtest.h>

#include "galvani/base/parallel.h"
#include "mutate/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::gray;
using testing::picture;

constexpr ImageShape kSmall{1, 28, 28};

std::vector<Parent> some_parents(const ImageShape& shape, int n, std::uint64_t seed = 1) {
  std::vector<Parent> parents;
  Rng rng(seed);
  for (int i = 0; i < n; ++i) {
    at::Tensor image = picture(shape, static_cast<std::uint64_t>(i % 5));
    parents.push_back({image, image, false, rng.derive(static_cast<std::uint64_t>(i))});
  }
  return parents;
}

Change change_of(const at::Tensor& reference, const at::Tensor& mutant) {
  return measure_change(shape_of(reference), reference.data_ptr<std::uint8_t>(), mutant.data_ptr<std::uint8_t>());
}

TEST(Validity, CountsPlacesAndTakesTheLargestDifference) {
  Change change = change_of(gray({{0, 255, 7, 9}}), gray({{255, 0, 7, 10}}));
  EXPECT_EQ(change.pixels, 3);
  EXPECT_EQ(change.largest, 255);  // bytes do not wrap: 0 - 255 is not 1
  at::Tensor colour = at::zeros({3, 2, 2}, at::kByte);
  at::Tensor changed = colour.clone();
  changed[0][0][0] = 4;
  changed[2][0][0] = 200;
  changed[1][1][1] = 1;
  change = change_of(colour, changed);
  EXPECT_EQ(change.pixels, 2);
  EXPECT_EQ(change.largest, 200);
  EXPECT_EQ(count_non_zero(shape_of(changed), changed.data_ptr<std::uint8_t>()), 2);
}

TEST(Validity, LargeImagesAreCountedInFull) {
  ImageShape shape{3, 301, 997};
  at::Tensor black = at::zeros({3, 301, 997}, at::kByte);
  at::Tensor white = at::full({3, 301, 997}, 255, at::kByte);
  EXPECT_EQ(change_of(black, white).pixels, 301 * 997);
  EXPECT_EQ(count_non_zero(shape, white.data_ptr<std::uint8_t>()), 301 * 997);
  EXPECT_EQ(change_of(black, white).largest, 255);
}

TEST(Validity, ExactlyAtTheBounds) {
  Validity validity;
  // Of 50 non-zero pixels a fifth is 10: fewer may change by anything, ten may not.
  EXPECT_TRUE(is_valid(validity, {9, 255}, 50));
  EXPECT_FALSE(is_valid(validity, {10, 255}, 50));
  // 0.4 · 255 = 102 is still allowed.
  EXPECT_TRUE(is_valid(validity, {50, 102}, 50));
  EXPECT_FALSE(is_valid(validity, {50, 103}, 50));
  // Nothing is fewer than a fifth of nothing.
  EXPECT_FALSE(is_valid(validity, {1, 103}, 0));
  EXPECT_TRUE(is_valid(validity, {784, 102}, 0));
}

// A dark figure of 12 by 12 pixels in the middle of a page of 28 by 28.
at::Tensor figure(int page, int ink) {
  at::Tensor image = at::full({1, 28, 28}, page, at::kByte);
  image.narrow(1, 8, 12).narrow(2, 8, 12).fill_(ink);
  return image;
}

bool gives_a_mutant(const std::string& rule, const at::Tensor& input, std::int64_t rate = 0) {
  MutationEngine engine(rule, {SampleType::of(input.sizes().vec(), rate), {}});
  Mutants mutants = engine.mutate({Parent{input, input, false, Rng(1)}});
  return mutants.each[0].valid;
}

TEST(Validity, AnAffineStepLeavesSomethingOfThePicture) {
  at::Tensor photo = picture({3, 28, 28}, 3);
  for (const at::Tensor& image : {figure(0, 255), figure(255, 0), photo}) {
    for (const char* rule : {"translation:x=28", "translation:y=-40", "translation:x=27", "shift:x=1",
                             "scale:ratio=0.05", "scale:ratio=20"})
      EXPECT_FALSE(gives_a_mutant(rule, image)) << rule << " of " << image.sum().item<std::int64_t>();
    for (const char* rule : {"translation:x=9", "translation:x=-5,y=5", "scale:ratio=0.5", "scale:ratio=1.5",
                             "rotation:angle=45", "shear:factor=0.6"})
      EXPECT_TRUE(gives_a_mutant(rule, image)) << rule << " of " << image.sum().item<std::int64_t>();
  }
  // What is left of the page without its figure is as good as nothing.
  EXPECT_FALSE(gives_a_mutant("translation:x=21", figure(255, 0)));
  EXPECT_TRUE(gives_a_mutant("translation:x=9", at::full({1, 28, 28}, 200, at::kByte)));
}

TEST(Validity, AnAffineStepLeavesSomethingOfTheSound) {
  at::Tensor tone = (at::sin(at::arange(8000) * 0.3) * 8000).to(at::kShort).unsqueeze(0);
  for (const char* rule : {"time-shift:seconds=1", "time-shift:seconds=-0.995", "gain:db=-40"})
    EXPECT_FALSE(gives_a_mutant(rule, tone, 8000)) << rule;
  for (const char* rule : {"time-shift:seconds=0.5", "gain:db=-12", "gain:db=6"})
    EXPECT_TRUE(gives_a_mutant(rule, tone, 8000)) << rule;
}

TEST(Engine, EveryMutantIsValidAndFollowsFromItsRule) {
  for (ImageShape shape : {kSmall, ImageShape{3, 32, 32}}) {
    for (const char* spec : {"nsgen", "nss", "deephunter"}) {
      MutationEngine engine(spec, {testing::image_type(shape), {}});
      std::vector<Parent> parents = some_parents(shape, 200);
      Mutants mutants = engine.mutate(parents);
      int affine = 0;
      for (std::size_t i = 0; i < parents.size(); ++i) {
        const Mutant& mutant = mutants.each[i];
        auto row = static_cast<std::int64_t>(i);
        ASSERT_TRUE(mutant.valid);
        Rule rule = engine.set().parse(engine.set().text(mutant.rule));
        EXPECT_TRUE(engine.set().apply(rule, parents[i].image).equal(mutants.images[row]));
        EXPECT_FALSE(mutants.images[row].equal(parents[i].image));
        EXPECT_EQ(mutant.affine_used, engine.set().mutator(rule).affine());
        at::Tensor reference = mutant.affine_used ? mutants.images[row] : parents[i].image;
        EXPECT_TRUE(mutants.references[row].equal(reference));
        Change change = change_of(reference, mutants.images[row]);
        EXPECT_TRUE(is_valid({}, change, (reference != 0).any(0).sum().item<std::int64_t>()));
        affine += mutant.affine_used ? 1 : 0;
      }
      EXPECT_GT(affine, 50) << spec;
      EXPECT_LT(affine, 150) << spec;
    }
  }
}

TEST(Engine, AffineOnceAndTheReferenceMovesAlong) {
  MutationEngine engine("nsgen", {testing::image_type(kSmall), {}});
  Rng rng(4);
  for (int lineage = 0; lineage < 40; ++lineage) {
    at::Tensor seed = picture(kSmall, 100 + static_cast<std::uint64_t>(lineage));
    Parent parent{seed, seed, false, rng};
    int affine = 0;
    std::vector<Rule> rules;
    for (int step = 0; step < 8; ++step) {
      parent.rng = rng.derive({static_cast<std::uint64_t>(lineage), static_cast<std::uint64_t>(step)});
      Mutants mutants = engine.mutate({parent});
      const Mutant& mutant = mutants.each[0];
      if (!mutant.valid) break;
      const Mutator& mutator = engine.set().mutator(mutant.rule);
      if (mutator.affine()) {
        ++affine;
        // The seed's own transformed image, not the mutant's.
        EXPECT_TRUE(mutants.references[0].equal(engine.set().apply(mutant.rule, parent.reference)));
      } else {
        EXPECT_TRUE(mutants.references[0].equal(parent.reference));
      }
      EXPECT_EQ(mutant.affine_used, affine > 0);
      Change change = change_of(mutants.references[0], mutants.images[0]);
      EXPECT_TRUE(is_valid({}, change, (mutants.references[0] != 0).sum().item<std::int64_t>()));
      parent.image = mutants.images[0];
      parent.reference = mutants.references[0];
      parent.affine_used = mutant.affine_used;
      EXPECT_TRUE(engine.valid(parent.reference, parent.image));
      // The lineage's text alone gives the same again.
      rules.push_back(engine.set().parse(engine.set().text(mutant.rule)));
      Parent replayed = engine.replay(seed, rules);
      EXPECT_TRUE(replayed.image.equal(parent.image));
      EXPECT_TRUE(replayed.reference.equal(parent.reference));
      EXPECT_EQ(replayed.affine_used, parent.affine_used);
    }
    EXPECT_GE(rules.size(), 1U);
    EXPECT_LE(affine, 1);
  }
}

TEST(Engine, ChangesAddUpAgainstTheReferenceNotTheParent) {
  // Steps of 60 are fine one by one; the second is 120 from the seed.
  MutationEngine engine("brightness:offset=60", {SampleType::image(1, 1, 4), {}});
  at::Tensor seed = gray({{10, 20, 30, 40}});
  Mutants first = engine.mutate({{seed, seed, false, Rng(1)}});
  ASSERT_TRUE(first.each[0].valid);
  Mutants second = engine.mutate({{first.images[0], first.references[0], false, Rng(2)}});
  EXPECT_FALSE(second.each[0].valid);
  EXPECT_EQ(second.each[0].tries, 50);
  EXPECT_FALSE(engine.valid(seed, engine.replay(seed, {second.each[0].rule, second.each[0].rule}).image));
  EXPECT_TRUE(second.images[0].equal(first.images[0]));
  EXPECT_TRUE(second.references[0].equal(seed));
  EXPECT_EQ(second.valid(), 0);
}

TEST(Engine, AnAffineStepThatWasRefusedIsNotUsedUp) {
  // Two of eleven pixels may differ by anything; moved by five, two of the six that are left may not. The contrast
  // leaves 10 as it is and changes only the bright two.
  at::Tensor seed = gray({{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}});
  at::Tensor image = gray({{255, 255, 10, 10, 10, 10, 10, 10, 10, 10, 10}});
  MutationEngine engine("translation:x=5,y=0,contrast:gain=0.96", {SampleType::image(1, 1, 11), {}});
  std::vector<Parent> parents;
  for (std::uint64_t i = 0; i < 30; ++i) parents.push_back({image, seed, false, Rng(i)});
  Mutants mutants = engine.mutate(parents);
  int tries = 0;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    EXPECT_TRUE(mutants.each[i].valid);
    EXPECT_FALSE(mutants.each[i].affine_used);
    EXPECT_EQ(engine.set().text(mutants.each[i].rule), "contrast:gain=0.96");
    EXPECT_TRUE(mutants.references[static_cast<std::int64_t>(i)].equal(seed));
    tries += mutants.each[i].tries;
  }
  EXPECT_GT(tries, 40);
}

TEST(Engine, AParentThatUsedItsAffineStepGetsNoOther) {
  MutationEngine affine_only("rotation,scale", {testing::image_type(kSmall), {}});
  std::vector<Parent> parents = some_parents(kSmall, 3);
  parents[1].affine_used = true;
  Mutants mutants = affine_only.mutate(parents);
  EXPECT_TRUE(mutants.each[0].valid);
  EXPECT_FALSE(mutants.each[1].valid);
  EXPECT_EQ(mutants.each[1].tries, 0);
  EXPECT_TRUE(mutants.each[1].affine_used);
  EXPECT_TRUE(mutants.images[1].equal(parents[1].image));
}

TEST(Engine, RepetitionsAreDroppedAndEnd) {
  for (const char* spec : {"translation:x=0,y=0", "contrast:gain=1", "rotation:angle=0"}) {
    Mutants mutants = MutationEngine(spec, {testing::image_type(kSmall), {}}).mutate(some_parents(kSmall, 4));
    EXPECT_EQ(mutants.valid(), 0) << spec;
    EXPECT_EQ(mutants.each[0].tries, 50) << spec;
    EXPECT_FALSE(mutants.each[0].affine_used) << spec;
  }
  // Nothing but brightness can change a black image.
  at::Tensor black = at::zeros({1, 28, 28}, at::kByte);
  std::vector<Parent> parents;
  for (std::uint64_t i = 0; i < 20; ++i) parents.push_back({black, black, false, Rng(i)});
  MutationEngine engine("nsgen", {testing::image_type(kSmall), {}});
  Mutants mutants = engine.mutate(parents);
  for (const Mutant& mutant : mutants.each) {
    EXPECT_TRUE(mutant.valid);
    EXPECT_EQ(engine.set().mutator(mutant.rule).name(), "brightness");
  }
}

TEST(Engine, UndoingALineageIsARepetition) {
  MutationEngine engine("brightness:offset=-20", {SampleType::image(1, 1, 3), {}});
  at::Tensor seed = gray({{10, 20, 30}});
  at::Tensor brighter = gray({{30, 40, 50}});
  EXPECT_FALSE(engine.mutate({{brighter, seed, false, Rng(1)}}).each[0].valid);
}

TEST(Engine, SameResultForAnyWorkersAndAnySplit) {
  ImageShape shape{3, 32, 32};
  std::vector<Parent> parents = some_parents(shape, 120, 3);
  for (std::size_t i = 0; i < parents.size(); i += 3) parents[i].affine_used = true;
  MutationEngine engine("nsgen,deephunter", {testing::image_type(shape), {}});
  set_workers(1);
  Mutants alone = engine.mutate(parents);
  for (int n : {2, 4}) {
    set_workers(n);
    Mutants together = engine.mutate(parents);
    EXPECT_TRUE(together.images.equal(alone.images));
    EXPECT_TRUE(together.references.equal(alone.references));
    for (std::size_t i = 0; i < parents.size(); ++i) {
      EXPECT_EQ(together.each[i].rule, alone.each[i].rule);
      EXPECT_EQ(together.each[i].tries, alone.each[i].tries);
    }
  }
  for (std::size_t first = 0; first < parents.size();) {
    std::size_t count = std::min(parents.size() - first, 1 + first % 17);
    auto begin = parents.begin() + static_cast<std::ptrdiff_t>(first);
    Mutants part = engine.mutate({begin, begin + static_cast<std::ptrdiff_t>(count)});
    auto row = static_cast<std::int64_t>(first);
    EXPECT_TRUE(part.images.equal(alone.images.narrow(0, row, static_cast<std::int64_t>(count))));
    first += count;
  }
  set_workers(2);
}

TEST(Engine, AnotherStreamAnotherMutant) {
  MutationEngine engine("nsgen", {testing::image_type(kSmall), {}});
  Mutants one = engine.mutate(some_parents(kSmall, 50, 1));
  Mutants two = engine.mutate(some_parents(kSmall, 50, 2));
  EXPECT_FALSE(one.images.equal(two.images));
}

TEST(Engine, NoParentsNoMutants) {
  Mutants none = MutationEngine("nsgen", {testing::image_type(kSmall), {}}).mutate({});
  EXPECT_EQ(none.images.size(0), 0);
  EXPECT_TRUE(none.each.empty());
}

TEST(Engine, BadRequestsAreExplained) {
  MutationEngine engine("nsgen", {testing::image_type(kSmall), {}});
  at::Tensor image = picture(kSmall);
  at::Tensor other = picture({1, 28, 27});
  EXPECT_NE(error_of([&] { engine.mutate({{other, other, false, Rng(1)}}); }).find("1x28x28"), std::string::npos);
  EXPECT_NE(error_of([&] { engine.mutate({{image, other, false, Rng(1)}}); }).find("reference"), std::string::npos);
  EXPECT_NE(error_of([&] { engine.mutate({{image.transpose(1, 2), image, false, Rng(1)}}); }), "");
  EXPECT_NE(error_of([&] { MutationEngine("nsgen", {SampleType::image(2, 4, 4), {}}); }), "");
  EXPECT_NE(error_of([&] { MutationEngine("nsgen", {}); }), "");
  EXPECT_NE(error_of([&] {
              MutationEngine("nsgen", {testing::image_type(kSmall), {}}, {{0.2, 1.5}, 50});
            }).find("beta"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              MutationEngine("nsgen", {testing::image_type(kSmall), {}}, {{-1, 0.4}, 50});
            }).find("alpha"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              MutationEngine("nsgen", {testing::image_type(kSmall), {}}, {{}, 0});
            }).find("try"),
            std::string::npos);
}

}  // namespace
}  // namespace galvani
