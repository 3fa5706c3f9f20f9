#include "galvani/fuzz/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/testing.h"

namespace galvani {
namespace {

// How often each of the entries is picked.
std::vector<double> shares(const std::string& spec, const std::vector<Entry>& entries) {
  auto scheduler = schedulers().create(Spec::parse(spec));
  std::vector<double> count(entries.size(), 0);
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    Rng rng = Rng(3).derive(static_cast<std::uint64_t>(i));
    auto id = scheduler->pick(entries, rng);
    EXPECT_TRUE(id >= 1 && id <= static_cast<std::int64_t>(entries.size()));
    count[static_cast<std::size_t>(id - 1)] += 1.0 / kDraws;
  }
  return count;
}

std::vector<Entry> entries_of(const std::vector<std::int64_t>& iterations, const std::vector<std::int64_t>& picks,
                              const std::vector<double>& gains) {
  std::vector<Entry> entries(iterations.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].iteration = iterations[i];
    entries[i].picks = picks[i];
    entries[i].gain = gains[i];
  }
  return entries;
}

constexpr double kNear = 0.012;

TEST(Scheduler, DecayTakesWhatWasPickedSeldom) {
  // p = max(1 - n/5, 0.01): 1, 0.2, 0.01; the sum of them is 1.21.
  auto found = shares("decay", entries_of({0, 0, 0}, {0, 4, 5}, {0, 0, 0}));
  EXPECT_NEAR(found[0], 1 / 1.21, kNear);
  EXPECT_NEAR(found[1], 0.2 / 1.21, kNear);
  EXPECT_NEAR(found[2], 0.01 / 1.21, kNear);
  found = shares("decay:gamma=2,min=0.5", entries_of({0, 0}, {0, 100}, {0, 0}));
  EXPECT_NEAR(found[0], 1 / 1.5, kNear);
}

TEST(Scheduler, NewestIsASoftmaxOfAge) {
  auto found = shares("newest", entries_of({0, 2, 3}, {9, 9, 9}, {0, 0, 0}));
  double sum = std::exp(-3.0) + std::exp(-1.0) + 1;
  EXPECT_NEAR(found[0], std::exp(-3.0) / sum, kNear);
  EXPECT_NEAR(found[1], std::exp(-1.0) / sum, kNear);
  EXPECT_NEAR(found[2], 1 / sum, kNear);
  // Entries that are far too old are not even looked at; those of one age are alike.
  found = shares("newest", entries_of({0, 1000, 1000}, {0, 0, 0}, {0, 0, 0}));
  EXPECT_EQ(found[0], 0);
  EXPECT_NEAR(found[1], 0.5, kNear);
}

TEST(Scheduler, UniformAndCoverage) {
  auto entries = entries_of({0, 0}, {0, 7}, {0, 3});
  EXPECT_NEAR(shares("uniform", entries)[0], 0.5, kNear);
  EXPECT_NEAR(shares("coverage", entries)[0], 0.2, kNear);  // 1 + 0 against 1 + 3
  EXPECT_NEAR(shares("coverage:base=3", entries)[0], 1.0 / 3, kNear);
}

TEST(Scheduler, RejectsWhatItDoesNotKnow) {
  EXPECT_NE(testing::error_of([] { schedulers().create(Spec::parse("decai")); }).find("did you mean 'decay'"),
            std::string::npos);
  EXPECT_NE(testing::error_of([] { schedulers().create(Spec::parse("decay:min=0")); }).find("min"), std::string::npos);
}

TEST(Scheduler, OnceIsDoneWhenEverySeedWasPicked) {
  auto scheduler = schedulers().create(Spec::parse("once"));
  std::vector<Entry> entries = entries_of({0, 0, 0}, {0, 0, 0}, {0, 0, 0});
  Rng rng(1);
  for (std::int64_t id = 1; id <= 3; ++id) {
    EXPECT_FALSE(scheduler->done(entries));
    EXPECT_EQ(scheduler->pick(entries, rng), id);
    entries[static_cast<std::size_t>(id - 1)].picks = 1;
  }
  // What was kept of them is none.
  entries.push_back(entries.front());
  entries.back().parent = 1;
  entries.back().picks = 0;
  EXPECT_TRUE(scheduler->done(entries));
  EXPECT_FALSE(schedulers().create(Spec::parse("sweep"))->done(entries));
}

}  // namespace
}  // namespace galvani
