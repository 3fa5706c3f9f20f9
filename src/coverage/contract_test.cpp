// Laws that every registered criterion keeps.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "coverage/testing.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

using testing::layout_of;
using testing::made_up;
using testing::profile_of;
using testing::reordered;
using testing::rows_of;
using testing::state_of;

// Every name, and options that change how a criterion works.
std::vector<std::string> specs() {
  std::vector<std::string> result = criteria().names();
  for (const char* more : {"nlc:order=free", "tknp:k=2,ordered=true", "nc:scale=false", "kmnc:k=7", "cc:distance=4",
                           "dsc:from=input", "lsc:upper=50,width=0.5", "npc:clusters=3", "cac:splits=2,edges=20",
                           "cac:sections=range,splits=3", "mdsc:upper=9,tap=a"})
    result.emplace_back(more);
  return result;
}

class EveryCriterion : public ::testing::TestWithParam<std::string> {
 protected:
  // A block of one neuron, and one wider than the k of most criteria.
  TraceLayout layout_ = layout_of({5, 1, 60});
  Traces training_ = made_up(layout_, 200, 1);
  Traces traces_ = made_up(layout_, 400, 2);
  std::shared_ptr<const Profile> profile_ = profile_of(layout_, GetParam(), training_);

  std::unique_ptr<Criterion> make() const { return make_criterion(Spec::parse(GetParam()), {layout_, profile_}); }
  static double close(double a) { return 1e-9 * (1 + std::abs(a)); }
};

TEST_P(EveryCriterion, StartsEmptyAndCoversSomething) {
  auto criterion = make();
  EXPECT_EQ(criterion->covered().covered, 0);
  // Tables of cac need many inputs before they say anything.
  Traces many = made_up(layout_, 3000, 3);
  criterion->add(many);
  EXPECT_GT(criterion->covered().covered, 0);
  EXPECT_EQ(criterion->inputs(), 3000);
  Covered amount = criterion->covered();
  EXPECT_TRUE(amount.total == 0 || amount.covered <= amount.total);
}

TEST_P(EveryCriterion, BatchSizeNeverChangesAResult) {
  auto whole = make();
  std::vector<double> gains = whole->add(traces_);
  for (std::int64_t size : {1, 7, 130}) {
    auto pieces = make();
    std::vector<double> gains_of_pieces;
    for (std::int64_t first = 0; first < traces_.size(); first += size) {
      auto part = pieces->add(rows_of(traces_, first, std::min(size, traces_.size() - first)));
      gains_of_pieces.insert(gains_of_pieces.end(), part.begin(), part.end());
    }
    EXPECT_EQ(gains_of_pieces, gains) << size;
    EXPECT_EQ(state_of(*pieces), state_of(*whole)) << size;
  }
}

TEST_P(EveryCriterion, ThreadsNeverChangeAResult) {
  auto first = make();
  first->add(traces_);
  for (int n : {1, 3}) {
    set_workers(n);
    auto again = make();
    again->add(traces_);
    EXPECT_EQ(state_of(*again), state_of(*first));
  }
  set_workers(2);
}

TEST_P(EveryCriterion, GainsSumToWhatIsCovered) {
  auto criterion = make();
  std::vector<double> gains = criterion->add(traces_);
  double sum = std::accumulate(gains.begin(), gains.end(), 0.0);
  EXPECT_NEAR(sum, criterion->covered().covered, close(sum));
}

TEST_P(EveryCriterion, GainsAreNeverNegativeIfMonotone) {
  auto criterion = make();
  if (!criterion->traits().monotone) GTEST_SKIP() << "not monotone by definition";
  for (double gain : criterion->add(traces_)) EXPECT_GE(gain, 0);
}

TEST_P(EveryCriterion, OrderDoesNotMatterWhereItMustNot) {
  auto a = make();
  if (!a->traits().order_free) GTEST_SKIP() << "depends on the order by definition";
  std::vector<std::int64_t> order(static_cast<std::size_t>(traces_.size()));
  std::iota(order.begin(), order.end(), 0);
  Rng(5).shuffle(order);
  auto b = make();
  a->add(traces_);
  b->add(reordered(traces_, order));
  if (a->covered_features() != nullptr) {
    EXPECT_EQ(state_of(*a), state_of(*b));
  } else {
    EXPECT_NEAR(a->score(), b->score(), close(a->score()));
  }
}

TEST_P(EveryCriterion, HalvesMergeToTheWhole) {
  auto whole = make();
  if (!whole->traits().merges) GTEST_SKIP() << "does not claim it";
  whole->add(traces_);
  auto left = make();
  auto right = make();
  left->add(rows_of(traces_, 0, 150));
  right->add(rows_of(traces_, 150, 250));
  left->merge(*right);
  EXPECT_EQ(left->inputs(), whole->inputs());
  if (whole->covered_features() != nullptr) {
    EXPECT_EQ(state_of(*left), state_of(*whole));
  } else {
    EXPECT_NEAR(left->score(), whole->score(), close(whole->score()));
  }
}

TEST_P(EveryCriterion, MergingNeverLoses) {
  auto left = make();
  auto right = make();
  left->add(rows_of(traces_, 0, 150));
  right->add(rows_of(traces_, 150, 250));
  auto merged = left->fresh();
  merged->merge(*left);
  EXPECT_EQ(state_of(*merged), state_of(*left));
  double before = merged->score();
  merged->merge(*right);
  // Pooling two estimates of nlc may give less than the larger one.
  if (left->id() == "nlc") return;
  EXPECT_GE(merged->score(), before);
  EXPECT_GE(merged->score(), right->score());
}

TEST_P(EveryCriterion, SavedStateGoesOn) {
  auto a = make();
  a->add(rows_of(traces_, 0, 200));
  std::string saved = state_of(*a);
  auto b = make();
  ArchiveReader in(saved, "state");
  b->load(in);
  in.expect_end();
  EXPECT_EQ(state_of(*b), saved);
  EXPECT_EQ(a->add(rows_of(traces_, 200, 200)), b->add(rows_of(traces_, 200, 200)));
  EXPECT_EQ(state_of(*a), state_of(*b));
}

TEST_P(EveryCriterion, FilesAreBoundToModelAndCriteria) {
  TemporaryFolder folder;
  std::vector<std::unique_ptr<Criterion>> criteria;
  criteria.push_back(make());
  criteria[0]->add(traces_);
  save_states(folder / "s", criteria, layout_);
  std::vector<std::unique_ptr<Criterion>> empty;
  empty.push_back(make());
  merge_states(folder / "s", empty, layout_);
  EXPECT_EQ(state_of(*empty[0]), state_of(*criteria[0]));
  TraceLayout other = layout_;
  other.model = "another";
  EXPECT_THROW(merge_states(folder / "s", empty, other), Error);
  profile_->save(folder / "p");
  EXPECT_NO_THROW(Profile::load(folder / "p", layout_));
  EXPECT_THROW(Profile::load(folder / "p", other), Error);
}

TEST_P(EveryCriterion, ALoadedProfileIsTheSame) {
  TemporaryFolder folder;
  profile_->save(folder / "p");
  auto loaded = make_criterion(Spec::parse(GetParam()), {layout_, Profile::load(folder / "p", layout_)});
  auto learned = make();
  loaded->add(traces_);
  learned->add(traces_);
  EXPECT_EQ(state_of(*loaded), state_of(*learned));
}

TEST_P(EveryCriterion, ResetForgetsEverything) {
  auto a = make();
  a->add(traces_);
  a->reset();
  EXPECT_EQ(state_of(*a), state_of(*make()));
}

TEST_P(EveryCriterion, ValuesThatAreNotFiniteAreDroppedAndCounted) {
  Traces broken = made_up(layout_, 400, 2);
  broken.values[3][0] = std::numeric_limits<float>::quiet_NaN();
  broken.values[5][65] = std::numeric_limits<float>::infinity();
  broken.relevance[7][1] = std::numeric_limits<float>::quiet_NaN();
  broken.layers[0].features[9][0] = -std::numeric_limits<float>::infinity();
  broken.layers[1].windows[11][0][0] = std::numeric_limits<float>::quiet_NaN();
  broken.predicted[13] = kNotANumber;
  mark_usable(broken);
  auto a = make();
  std::vector<double> gains = a->add(broken);
  EXPECT_EQ(a->dropped(), 6);
  EXPECT_EQ(a->inputs(), 394);
  std::vector<std::int64_t> good;
  for (std::int64_t i = 0; i < 400; ++i) {
    if (i >= 3 && i <= 13 && i % 2 == 1) {
      EXPECT_EQ(gains[static_cast<std::size_t>(i)], 0);
    } else {
      good.push_back(i);
    }
  }
  auto b = make();
  b->add(reordered(traces_, good));
  EXPECT_EQ(a->score(), b->score());
}

TEST_P(EveryCriterion, NoInputsAndOneInput) {
  auto a = make();
  EXPECT_TRUE(a->add(made_up(layout_, 0, 1)).empty());
  EXPECT_EQ(a->covered().covered, 0);
  EXPECT_EQ(a->add(made_up(layout_, 1, 1)).size(), 1U);
  EXPECT_TRUE(std::isfinite(a->score()));
}

TEST_P(EveryCriterion, ConstantNeurons) {
  Traces flat = made_up(layout_, 50, 1);
  flat.values.fill_(1);
  flat.relevance.fill_(1);
  for (LayerTrace& layer : flat.layers) {
    layer.features = at::ones_like(layer.features);
    layer.windows = at::ones_like(layer.windows);
  }
  auto criterion = make_criterion(Spec::parse(GetParam()), {layout_, profile_of(layout_, GetParam(), flat)});
  criterion->add(flat);
  EXPECT_TRUE(std::isfinite(criterion->score()));
  criterion->add(traces_);
  EXPECT_TRUE(std::isfinite(criterion->score()));
}

TEST_P(EveryCriterion, TapsAddUpToTheTotal) {
  auto criterion = make();
  criterion->add(traces_);
  std::vector<TapCovered> taps = criterion->by_tap();
  if (taps.empty()) GTEST_SKIP() << "counts over all taps together";
  Covered sum;
  for (const TapCovered& tap : taps) {
    sum.covered += tap.amount.covered;
    sum.total += tap.amount.total;
  }
  EXPECT_NEAR(sum.covered, criterion->covered().covered, close(sum.covered));
  EXPECT_EQ(sum.total, criterion->covered().total);
}

TEST_P(EveryCriterion, FeaturesAreWhatAddCounts) {
  auto criterion = make();
  Features features;
  if (!criterion->features(traces_, features)) GTEST_SKIP() << "not a set of features";
  std::vector<double> gains = criterion->add(traces_);
  FeatureSet set(criterion->covered_features()->universe());
  for (std::size_t i = 0; i < gains.size(); ++i) {
    double fresh = 0;
    for (std::size_t at = features.begin_of(i); at < features.ends[i]; ++at)
      fresh += set.insert(features.ids[at]) ? 1 : 0;
    EXPECT_EQ(fresh, gains[i]);
  }
  EXPECT_EQ(set.count_missing_from(*criterion->covered_features()), 0U);
  EXPECT_EQ(set.size(), criterion->covered_features()->size());
}

TEST_P(EveryCriterion, CannotMergeWithAnotherSpec) {
  auto a = make();
  TraceLayout other = layout_of({5, 1, 61});
  auto b = make_criterion(Spec::parse(GetParam()), {other, profile_of(other, GetParam(), made_up(other, 200, 1))});
  EXPECT_THROW(a->merge(*b), Error);
}

std::string readable(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, EveryCriterion, ::testing::ValuesIn(specs()), readable);

TEST(Criteria, BadNamesAndOptionsAreRefused) {
  TraceLayout layout = layout_of({4});
  for (const char* text : {"nonsense", "kmnc:k=0", "kmnc:q=1", "dsc:from=nowhere", "nlc:order=x", "cac:splits=1"})
    EXPECT_THROW(make_criterion(Spec::parse(text), {layout, nullptr}), Error) << text;
  // What needs a profile says so.
  for (const char* text : {"kmnc", "nbc", "snac", "lsc", "dsc", "mdsc", "cac", "npc"}) {
    try {
      make_criterion(Spec::parse(text), {layout, nullptr});
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("--profile"), std::string::npos);
    }
  }
  EXPECT_THROW(make_criteria("nc,nc", {layout, nullptr}), Error);
}

}  // namespace
}  // namespace galvani
