#include "galvani/coverage/cover.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/coverage/profile_source.h"
#include "galvani/model/zoo.h"

namespace galvani {
namespace {

class CoverTest : public ::testing::Test {
 protected:
  CoverTest() {
    Rng rng(5);
    Network::Options options;
    options.execution = {16, false};
    std::string bytes = architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng);
    network_ = Network::from_onnx(std::move(bytes), "lenet1", options);
    tracer_ = std::make_unique<Tracer>(*network_, network_->select_taps("default"), NeuronUnit::channel);
    data_ = load_data("digits:test[0:64]");
  }
  CoverResult covered(const std::string& data, const CoverRequest& request) {
    return measure_coverage(*tracer_, load_data(data), request);
  }
  static CoverRequest asked(const std::string& criteria) {
    CoverRequest request;
    request.criteria = criteria;
    return request;
  }

  std::unique_ptr<Network> network_;
  std::unique_ptr<Tracer> tracer_;
  Dataset data_;
};

// Two halves: what each has alone, what both have, and what the whole has, must add up.
TEST_F(CoverTest, ComparesTwoSetsOfInputs) {
  CoverResult a = covered("digits:test[0:32]", asked("tknc:k=2,nlc"));
  CoverResult b = covered("digits:test[32:64]", asked("tknc:k=2,nlc"));
  CoverResult whole = covered("digits:test[0:64]", asked("tknc:k=2,nlc"));
  std::vector<CoverDifference> differences = compare_coverage(a, b);
  ASSERT_EQ(differences.size(), 2U);
  const CoverDifference& tknc = differences[0];
  EXPECT_EQ(tknc.together.covered, whole.measurement.criteria()[0]->covered().covered);
  EXPECT_EQ(tknc.a.covered + static_cast<double>(*tknc.only_b), tknc.together.covered);
  EXPECT_EQ(tknc.b.covered + static_cast<double>(*tknc.only_a), tknc.together.covered);
  EXPECT_FALSE(differences[1].only_a) << "nlc is no set of features";
  Figures figures = figures_of(differences);
  EXPECT_EQ(names_of(figures), difference_figure_names("tknc:k=2,nlc"));
  EXPECT_EQ(Gate("tknc-adds>0").value(figures), tknc.together.score() - tknc.a.score());
}

TEST_F(CoverTest, FiguresAreNamedBeforeAnythingIsMeasured) {
  CoverResult result = covered("digits:test[0:16]", asked("nc,tknc:k=1,tknc:k=2"));
  EXPECT_EQ(cover_figure_names("nc,tknc:k=1,tknc:k=2"),
            (std::vector<std::string>{"inputs", "dropped", "nc", "tknc:k=1", "tknc:k=2"}));
  Figures figures = figures_of(result);
  EXPECT_EQ(names_of(figures), cover_figure_names("nc,tknc:k=1,tknc:k=2"));
  EXPECT_EQ(Gate("inputs>0").value(figures), 16);
  EXPECT_EQ(Gate("tknc:k=2>0").value(figures), result.measurement.criteria()[2]->score());
}

TEST_F(CoverTest, TheSmallestSetCoversTheSame) {
  CoverRequest request = asked("tknc:k=2,nlc,cc:distance=20");
  request.minimise = true;
  CoverResult all = measure_coverage(*tracer_, data_, request);
  std::vector<std::int64_t> kept = all.smallest();
  ASSERT_LT(kept.size(), 64U);
  CoverResult again = measure_coverage(*tracer_, data_.subset(kept), request);
  EXPECT_EQ(again.measurement.criteria()[0]->covered().covered, all.measurement.criteria()[0]->covered().covered);
  request.criteria = "nlc:order=free";
  EXPECT_THROW(measure_coverage(*tracer_, data_, request), Error);
}

TEST_F(CoverTest, ClassesAddUp) {
  CoverRequest request = asked("tknc:k=1");
  request.by_class = true;
  CoverResult result = measure_coverage(*tracer_, data_, request);
  auto together = result.measurement.criteria()[0]->fresh();
  std::int64_t inputs = 0;
  for (const auto& [label, criteria] : result.by_class) {
    inputs += criteria[0]->inputs();
    together->merge(*criteria[0]);
  }
  EXPECT_EQ(inputs, 64);
  EXPECT_EQ(together->covered().covered, result.measurement.criteria()[0]->covered().covered);
}

TEST_F(CoverTest, AProfileIsFoundWhereItIs) {
  TemporaryFolder folder;
  std::vector<Spec> criteria = Spec::parse_list("kmnc");
  EXPECT_TRUE(needs_profile(criteria, tracer_->layout()));
  EXPECT_FALSE(needs_profile(Spec::parse_list("nc"), tracer_->layout()));
  EXPECT_EQ(find_profile(*tracer_, criteria, {}, 1), nullptr);
  ProfileSource source{"", "digits:train[0:40]", "30"};
  EXPECT_EQ(source.str(), "digits:train[0:40], 30 inputs");
  auto learned = find_profile(*tracer_, criteria, source, 1);
  EXPECT_EQ(learned->inputs(), 30);
  learned->save(folder / "p");
  EXPECT_EQ(find_profile(*tracer_, criteria, {(folder / "p").string(), "", ""}, 1)->parts_hash(),
            learned->parts_hash());
  EXPECT_THROW(find_profile(*tracer_, criteria, {"p", "digits:train", "all"}, 1), Error);

  // A kept one counts where no source is named, or the same; its data need not be there then.
  ProfileSource gone{"", "gone.npz", "30"};
  KeptProfile kept{folder / "p", gone.str()};
  EXPECT_EQ(find_profile(*tracer_, criteria, {}, 1, kept)->parts_hash(), learned->parts_hash());
  EXPECT_EQ(find_profile(*tracer_, criteria, gone, 1, kept)->parts_hash(), learned->parts_hash());
  EXPECT_EQ(find_profile(*tracer_, criteria, {"", "digits:train[0:40]", "20"}, 1, kept)->inputs(), 20);
  // One that is damaged is learned again if it can be.
  write_file(folder / "p", "no profile");
  EXPECT_THROW(find_profile(*tracer_, criteria, {}, 1, kept), Error);
  kept.source = source.str();
  EXPECT_EQ(find_profile(*tracer_, criteria, source, 1, kept)->parts_hash(), learned->parts_hash());
}

TEST(ProfileSize, IsANumberOrAll) {
  EXPECT_EQ(parse_profile_size("all"), 0);
  EXPECT_EQ(parse_profile_size("12"), 12);
  for (const char* wrong : {"", "0", "-3", "12x", "1.5"}) EXPECT_THROW(parse_profile_size(wrong), Error) << wrong;
}

TEST(CoverageText, SharesAndPlainNumbers) {
  EXPECT_EQ(coverage_text({1, 3}), "33.33%");
  EXPECT_EQ(coverage_text({23599, 23600}), "99.99%");
  EXPECT_EQ(coverage_text({23600, 23600}), "100.00%");
  EXPECT_EQ(coverage_text({12345, 0}), "12,345");
  EXPECT_EQ(coverage_text({12345.678, 0}), "12346");
  EXPECT_EQ(coverage_text({0.25, 0}), "0.25");
}

}  // namespace
}  // namespace galvani
