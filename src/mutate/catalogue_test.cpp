#include "galvani/mutate/catalogue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "mutate/testing.h"

namespace galvani {
namespace {

using testing::error_of;

MutationContext gray28() {
  return {SampleType::image(1, 28, 28), {}};
}

TEST(Catalogue, NsgenHasItsNinetyFiveRules) {
  std::vector<std::string> rules = catalogue_rules("nsgen");
  EXPECT_EQ(rules.size(), 95U);
  EXPECT_EQ(std::set<std::string>(rules.begin(), rules.end()).size(), 95U);
  std::map<std::string, int> families;
  for (const std::string& rule : rules) ++families[rule.substr(0, rule.find(':'))];
  EXPECT_EQ(families,
            (std::map<std::string, int>{
                {"translation", 7}, {"scale", 4}, {"rotation", 60}, {"contrast", 7}, {"brightness", 7}, {"blur", 10}}));
  std::set<std::string> all(rules.begin(), rules.end());
  for (const char* rule :
       {"translation:x=-5,y=-5",   "translation:x=0,y=0",       "translation:x=5,y=5",  "scale:ratio=0.8",
        "scale:ratio=0.85",        "scale:ratio=0.95",          "rotation:angle=-30",   "rotation:angle=0",
        "rotation:angle=29",       "contrast:gain=0.8",         "contrast:gain=1",      "contrast:gain=1.2",
        "contrast:gain=1.4",       "contrast:gain=1.8",         "contrast:gain=2",      "brightness:offset=10",
        "brightness:offset=70",    "blur:kind=box,size=3",      "blur:kind=box,size=6", "blur:kind=gaussian,size=7",
        "blur:kind=median,size=5", "blur:kind=bilateral,size=9"})
    EXPECT_EQ(all.count(rule), 1U) << rule;
  for (const char* rule : {"translation:x=5,y=-5", "rotation:angle=30", "scale:ratio=1", "blur:kind=median,size=4"})
    EXPECT_EQ(all.count(rule), 0U) << rule;
}

TEST(Catalogue, RulesOfACataloguesWithRandomSeedsCannotBeListed) {
  EXPECT_NE(error_of([] { catalogue_rules("deephunter"); }).find("endless"), std::string::npos);
  EXPECT_NE(error_of([] { catalogue_rules("nss"); }).find("endless"), std::string::npos);
}

// How often each mutator comes in n draws.
std::map<std::string, int> tally(const MutatorSet& set, int n, bool affine_allowed = true) {
  std::map<std::string, int> counts;
  Rng rng(5);
  Rule rule;
  for (int i = 0; i < n; ++i) {
    if (set.draw(rng, affine_allowed, rule)) ++counts[set.mutator(rule).name()];
  }
  return counts;
}

TEST(Catalogue, FamiliesAreDrawnAlike) {
  std::map<std::string, int> counts = tally(MutatorSet("nsgen", gray28()), 6000);
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [name, count] : counts) EXPECT_NEAR(count, 1000, 120) << name;
}

TEST(Catalogue, RulesOfAFamilyAreDrawnAlike) {
  // Ten blurs: the bilateral one, a pattern of its own, is no likelier than any box.
  MutatorSet set("blur", gray28());
  std::map<std::string, int> counts;
  Rng rng(5);
  Rule rule;
  for (int i = 0; i < 5000; ++i) {
    set.draw(rng, true, rule);
    ++counts[set.text(rule)];
  }
  EXPECT_EQ(counts.size(), 10U);
  for (const auto& [text, count] : counts) EXPECT_NEAR(count, 500, 90) << text;
}

TEST(Catalogue, WeightsAndSubsets) {
  std::map<std::string, int> counts = tally(MutatorSet("rotation,blur:w=3", gray28()), 4000);
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts["blur"], 3000, 150);
  counts = tally(MutatorSet("nsgen:w=0.5,noise:w=3", gray28()), 4000);
  EXPECT_EQ(counts.size(), 7U);
  EXPECT_NEAR(counts["noise"], 2000, 150);
}

TEST(Catalogue, WithoutAffineOnesTheOthersKeepTheirWeights) {
  std::map<std::string, int> counts = tally(MutatorSet("nsgen", gray28()), 3000, false);
  EXPECT_EQ(counts.size(), 3U);
  for (const char* name : {"contrast", "brightness", "blur"}) EXPECT_NEAR(counts[name], 1000, 120) << name;
  EXPECT_TRUE(tally(MutatorSet("rotation,shear", gray28()), 10, false).empty());
}

TEST(Catalogue, DeepHunterGroups) {
  auto names = [](const std::string& spec) {
    std::set<std::string> result;
    for (const auto& [name, count] : tally(MutatorSet(spec, gray28()), 2000)) result.insert(name);
    return result;
  };
  std::set<std::string> d = {"contrast", "brightness", "pixel-change", "noise"};
  std::set<std::string> n = {"translation", "scale", "shear", "rotation", "blur"};
  EXPECT_EQ(names("deephunter:group=d"), d);
  EXPECT_EQ(names("deephunter:group=n"), n);
  std::set<std::string> all = d;
  all.insert(n.begin(), n.end());
  EXPECT_EQ(names("deephunter:group=all"), all);
  EXPECT_EQ(names("deephunter"), all);
  EXPECT_EQ(names("nss:only=blur"), (std::set<std::string>{"blur"}));
}

TEST(Catalogue, NssRanges) {
  MutatorSet set("nss", gray28());
  Rng rng(9);
  Rule rule;
  std::map<std::string, std::pair<double, double>> seen;
  for (int i = 0; i < 20000; ++i) {
    set.draw(rng, true, rule);
    const std::string& name = set.mutator(rule).name();
    double value = rule.values[name == "blur" || name == "brightness" ? 1 : 0];
    auto& [low, high] = seen.emplace(name, std::pair(value, value)).first->second;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::map<std::string, std::pair<double, double>> wanted = {
      {"shift", {0.05, 0.15}},  {"rotation", {5, 25}},      {"scale", {0.8, 1.2}}, {"shear", {15, 30}},
      {"contrast", {0.5, 1.5}}, {"brightness", {0.5, 1.5}}, {"blur", {2, 7}}};
  ASSERT_EQ(seen.size(), wanted.size());
  for (const auto& [name, range] : wanted) {
    double slack = (range.second - range.first) / 100;
    EXPECT_GE(seen[name].first, range.first) << name;
    EXPECT_LE(seen[name].second, range.second) << name;
    EXPECT_NEAR(seen[name].first, range.first, slack) << name;
    EXPECT_NEAR(seen[name].second, range.second, slack) << name;
  }
}

TEST(Catalogue, RangesListsAndSteps) {
  auto texts = [](const std::string& spec) {
    std::string result;
    MutatorSet set(spec, gray28());
    for (const Family& family : set.families()) {
      for (const Rule& rule : family.listed) result += set.text(rule) + " ";
    }
    return result;
  };
  EXPECT_EQ(texts("rotation:angle=-1..2..1"), "rotation:angle=-1 rotation:angle=0 rotation:angle=1 rotation:angle=2 ");
  EXPECT_EQ(texts("contrast:gain=0.1..0.35..0.1"), "contrast:gain=0.1 contrast:gain=0.2 contrast:gain=0.3 ");
  EXPECT_EQ(texts("contrast:gain=3/0.5"), "contrast:gain=3 contrast:gain=0.5 ");
  EXPECT_EQ(texts("translation:x=0/1,y=5..6"),
            "translation:x=0,y=5 translation:x=0,y=6 translation:x=1,y=5 translation:x=1,y=6 ");
  EXPECT_EQ(texts("blur:kind=box/median,size=3"), "blur:kind=box,size=3 blur:kind=median,size=3 ");
  EXPECT_EQ(texts("rotation:angle=1..2"), "");  // a continuum
}

TEST(Catalogue, WhatIsDrawnFromARangeHasAShortText) {
  MutatorSet set("rotation:angle=5..25", gray28());
  Rng rng(3);
  Rule rule;
  for (int i = 0; i < 200; ++i) {
    set.draw(rng, true, rule);
    EXPECT_LE(set.text(rule).size(), std::string("rotation:angle=12.3456").size()) << set.text(rule);
  }
}

TEST(Catalogue, MistakesAreExplained) {
  auto error = [](const std::string& spec) { return error_of([&] { MutatorSet(spec, gray28()); }); };
  EXPECT_NE(error("rotatoin").find("did you mean 'rotation'"), std::string::npos) << error("rotatoin");
  EXPECT_NE(error("zzzzzzzz").find("nsgen"), std::string::npos) << error("zzzzzzzz");
  EXPECT_NE(error("rotation:w=0").find("'w'"), std::string::npos);
  EXPECT_NE(error("rotation:w=-1").find("'w'"), std::string::npos);
  EXPECT_NE(error("nsgen:group=d").find("group"), std::string::npos);
  EXPECT_NE(error("deephunter:group=x").find("d, n, all"), std::string::npos);
  EXPECT_NE(error("nss:only=noise").find("no mutator 'noise'"), std::string::npos);
  EXPECT_NE(error("all:only=noise").find("only"), std::string::npos);
  EXPECT_NE(error("rotation:angle=5..1").find("smaller"), std::string::npos);
  EXPECT_NE(error("rotation:angle=0..9..0"), "");
  EXPECT_NE(error("rotation:angle=0..360..0.000001").find("million"), std::string::npos);
  EXPECT_NE(error("rotation:angle=1/"), "");
  EXPECT_NE(error("rotation:angle=.."), "");
  EXPECT_NE(error("blur:kind=median,size=3..6").find("odd"), std::string::npos);
  EXPECT_NE(error(""), "");
  EXPECT_NE(error("rotation,"), "");
}

}  // namespace
}  // namespace galvani
