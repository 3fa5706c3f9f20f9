// What holds for every registered mutator.
#include <gtest/gtest.h>

#include "mutate/testing.h"

namespace galvani {
namespace {

using testing::error_of;
using testing::mutated;
using testing::picture;

using testing::input_of;

// Style images of another size and, every second time, of the other kind.
MutationContext context_for(const SampleType& type) {
  MutationContext context;
  context.type = type;
  if (type.kind == SampleKind::audio) return context;
  int channels = static_cast<int>(type.shape[2] % 2 == 0 ? type.shape[0] : 4 - type.shape[0]);
  context.style_images = at::stack({picture({channels, 9, 14}, 5), picture({channels, 9, 14}, 6)});
  return context;
}

bool of_sounds(const std::string& mutator) {
  return make_mutator(Spec{mutator, {}}, {})->kind() == SampleKind::audio;
}

// Those that a mutator takes, the usual ones first.
std::vector<SampleType> usual_types(const std::string& mutator) {
  if (of_sounds(mutator)) return {SampleType::audio(1, 8000, 16000), SampleType::audio(2, 3000, 8000)};
  return {SampleType::image(3, 32, 32), SampleType::image(1, 28, 28)};
}

std::vector<SampleType> odd_types(const std::string& mutator) {
  if (of_sounds(mutator))
    return {SampleType::audio(1, 1, 8000), SampleType::audio(2, 2, 44100), SampleType::audio(3, 17, 8000),
            SampleType::audio(1, 700, 96000), SampleType::audio(1, 1300, 100)};
  return {SampleType::image(1, 1, 1),   SampleType::image(3, 1, 1),  SampleType::image(1, 1, 17),
          SampleType::image(3, 13, 1),  SampleType::image(1, 2, 2),  SampleType::image(3, 5, 3),
          SampleType::image(1, 31, 67), SampleType::image(3, 67, 31)};
}

// The mutator's usual rules and some drawn ones.
std::vector<Rule> some_rules(const MutatorSet& set) {
  std::vector<Rule> rules;
  Rng rng(11);
  for (const Family& family : set.families()) {
    for (std::size_t i = 0; i < std::min<std::size_t>(6, family.listed.size()); ++i)
      rules.push_back(family.listed[i * family.listed.size() / 6]);
    for (int i = 0; i < 4; ++i) rules.push_back(family.draw(rng));
  }
  return rules;
}

// A style network needs a file; it has tests of its own.
std::vector<std::string> usable_mutators() {
  std::vector<std::string> names = mutators().names();
  names.erase(std::remove(names.begin(), names.end(), "style-net"), names.end());
  return names;
}

class EveryMutator : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryMutator, SameRuleSameBytesAlsoThroughItsText) {
  for (const SampleType& type : usual_types(GetParam())) {
    MutatorSet set(GetParam(), context_for(type));
    MutatorSet other(GetParam(), context_for(type));
    at::Tensor image = input_of(type);
    at::Tensor before = image.clone();
    for (const Rule& rule : some_rules(set)) {
      std::string text = set.text(rule);
      at::Tensor once = set.apply(rule, image);
      EXPECT_EQ(other.parse(text), rule) << text;
      EXPECT_TRUE(once.equal(other.apply(other.parse(text), image))) << text;
      EXPECT_EQ(other.text(other.parse(text)), text);
      EXPECT_EQ(once.sizes(), image.sizes()) << text;
      EXPECT_EQ(once.scalar_type(), type.dtype()) << text;
    }
    EXPECT_TRUE(image.equal(before)) << "the image given was changed";
  }
}

TEST_P(EveryMutator, TakesEverySize) {
  for (const SampleType& type : odd_types(GetParam())) {
    MutatorSet set(GetParam(), context_for(type));
    at::Tensor image = input_of(type);
    for (const Rule& rule : some_rules(set)) EXPECT_EQ(set.apply(rule, image).sizes(), image.sizes());
  }
}

// Writing past the end shows in the bytes behind it.
TEST_P(EveryMutator, WritesItsOwnBytesOnly) {
  for (const SampleType& type : odd_types(GetParam())) {
    MutatorSet set(GetParam(), context_for(type));
    at::Tensor image = input_of(type);
    for (const Rule& rule : some_rules(set)) {
      std::vector<std::uint8_t> buffer(type.bytes() + 128, 77);
      set.mutator(rule).apply(rule, type, image.data_ptr(), buffer.data() + 64);
      for (std::size_t i = 0; i < 64; ++i) {
        ASSERT_EQ(buffer[i], 77) << set.text(rule);
        ASSERT_EQ(buffer[buffer.size() - 1 - i], 77) << set.text(rule);
      }
    }
  }
}

TEST_P(EveryMutator, DoesSomethingToAnInput) {
  SampleType type = usual_types(GetParam())[0];
  MutatorSet set(GetParam(), context_for(type));
  at::Tensor image = input_of(type);
  int changes = 0, all = 0;
  for (const Rule& rule : some_rules(set)) {
    changes += set.apply(rule, image).equal(image) ? 0 : 1;
    ++all;
  }
  EXPECT_GT(all, 0);
  EXPECT_GT(2 * changes, all);  // some of NSGen's rules change nothing
}

TEST_P(EveryMutator, RefusesWhatItDoesNotHave) {
  MutationContext context = context_for(usual_types(GetParam())[1]);
  MutatorSet set(of_sounds(GetParam()) ? "gain" : "rotation", context);
  EXPECT_NE(error_of([&] { MutatorSet(GetParam() + ":nonsense=1", context); }).find("nonsense"), std::string::npos);
  EXPECT_NE(error_of([&] { set.parse(GetParam() + ":nonsense=1"); }).find("nonsense"), std::string::npos);
  for (const OptionInfo& info : mutators().at(GetParam()).schema) {
    for (const char* value : {"", "x", "nan", "inf", "1e99", "-1e99", "--1", "1 2", "0x", "99999999999999999999"}) {
      std::string spec = GetParam() + ":" + info.name + "=" + value;
      EXPECT_NE(error_of([&] { MutatorSet(spec, context); }), "") << spec;
      EXPECT_NE(error_of([&] { set.parse(spec); }), "") << spec;
    }
    if (!info.low) continue;
    for (double bad : {*info.low - 1, *info.high + 1}) {
      std::string spec = fmt::format("{}:{}={}", GetParam(), info.name, bad);
      EXPECT_NE(error_of([&] { set.parse(spec); }), "") << spec;
    }
  }
}

// The bounds of every parameter are values it can stand.
TEST_P(EveryMutator, StandsItsBounds) {
  SampleType type = of_sounds(GetParam()) ? SampleType::audio(2, 900, 8000) : SampleType::image(3, 8, 11);
  MutationContext context = context_for(type);
  MutatorSet set(GetParam(), context);
  at::Tensor image = input_of(type);
  for (const OptionInfo& info : mutators().at(GetParam()).schema) {
    if (!info.low || info.name == "image") continue;
    for (double bound : {*info.low, *info.high}) {
      std::string spec = GetParam() + ":" + info.name + "=" + rule_value_text(info, bound);
      MutatorSet bounded(spec, context);
      for (const Rule& rule : some_rules(bounded)) EXPECT_EQ(bounded.apply(rule, image).sizes(), image.sizes()) << spec;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mutators, EveryMutator, ::testing::ValuesIn(usable_mutators()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Contract, NeutralParametersChangeNothing) {
  for (ImageShape shape : {ImageShape{1, 28, 28}, ImageShape{3, 32, 32}, ImageShape{3, 7, 4}}) {
    at::Tensor image = picture(shape);
    for (const char* rule :
         {"translation:x=0,y=0", "shift:x=0,y=0", "scale:ratio=1", "rotation:angle=0", "rotation:angle=360", "shear",
          "contrast:gain=1", "contrast:gain=1,about=mean", "brightness", "brightness:offset=0", "blur:kind=box,size=1",
          "blur:kind=gaussian,size=1", "blur:kind=median,size=1", "pixel-change:count=0,seed=1", "noise:sigma=0,seed=1",
          "noise:sigma=0,kind=shot,seed=1"})
      EXPECT_TRUE(mutated(rule, image).equal(image)) << rule;
  }
}

TEST(Contract, HostileRuleTextIsRefused) {
  at::Tensor image = picture({1, 4, 4});
  std::string endless(100000, '9');
  for (const std::string& rule : {std::string(),
                                  std::string(":"),
                                  std::string(","),
                                  std::string("="),
                                  std::string("rotation:"),
                                  std::string("rotation:angle"),
                                  std::string("rotation:angle=1,angle=2"),
                                  std::string("rotation,blur"),
                                  std::string("rotation:angle=1..2"),
                                  std::string("rotation:angle=1/2"),
                                  std::string("nosuch:x=1"),
                                  std::string("rotation\0:angle=1", 17),
                                  std::string("rotation:angle=1\0", 17),
                                  "rotation:angle=" + endless,
                                  endless,
                                  std::string("\x1b[31mrotation"),
                                  std::string("noise:sigma=8"),
                                  std::string("pixel-change:count=3"),
                                  std::string("noise:sigma=8,seed=-1"),
                                  std::string("noise:sigma=8,seed=4294967296"),
                                  std::string("noise:sigma=8,seed=1.5"),
                                  std::string("blur:kind=boxy"),
                                  std::string("rotation:w=2,angle=1")}) {
    std::string error = error_of([&] { mutated(rule, image); });
    EXPECT_NE(error, "") << printable(rule);
    EXPECT_EQ(error.find("not a usage error"), std::string::npos) << error;
    EXPECT_EQ(error.find('\x1b'), std::string::npos);
    EXPECT_LT(error.size(), 600U);
  }
}

TEST(Contract, ImagesOfOtherKindsAreRefused) {
  for (const at::Tensor& image : {at::zeros({2, 4, 4}, at::kByte), at::zeros({4, 4}, at::kByte),
                                  at::zeros({1, 4, 4}, at::kFloat), at::zeros({1, 0, 4}, at::kByte), at::Tensor()})
    EXPECT_NE(error_of([&] { mutated("rotation:angle=3", image); }), "");
}

TEST(Contract, GroupsAndAffinity) {
  MutatorSet set("all", context_for(SampleType::image(3, 32, 32)));
  std::string affine, d, n;
  for (const Family& family : set.families()) {
    std::string name = family.mutator->name() + " ";
    if (family.mutator->affine()) affine += name;
    if (family.mutator->group() == MutatorGroup::differentiable) d += name;
    if (family.mutator->group() == MutatorGroup::non_differentiable) n += name;
  }
  EXPECT_EQ(affine, "translation shift scale rotation shear ");
  EXPECT_EQ(d, "contrast brightness pixel-change noise ");
  EXPECT_EQ(n, "translation shift scale rotation shear blur ");
  affine.clear();
  MutatorSet of_sound("all", context_for(SampleType::audio(1, 800, 8000)));
  for (const Family& family : of_sound.families()) {
    EXPECT_EQ(family.mutator->kind(), SampleKind::audio);
    if (family.mutator->affine()) affine += family.mutator->name() + " ";
  }
  EXPECT_EQ(affine, "gain time-shift time-stretch pitch ");
}

TEST(Contract, MutatorsOfTheOtherKindAreRefused) {
  MutationContext image = context_for(SampleType::image(1, 28, 28));
  MutationContext sound = context_for(SampleType::audio(1, 800, 8000));
  EXPECT_NE(error_of([&] { MutatorSet("gain", image); }).find("changes clips, but these are images"),
            std::string::npos);
  EXPECT_NE(error_of([&] { MutatorSet("nsgen", sound); }).find("--mutators audio"), std::string::npos);
}

}  // namespace
}  // namespace galvani
