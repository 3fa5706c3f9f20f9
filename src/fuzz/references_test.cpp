#include "galvani/fuzz/references.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>

#include "fuzz/testing.h"
#include "galvani/base/files.h"
#include "galvani/fuzz/check.h"
#include "galvani/fuzz/listener.h"
#include "galvani/fuzz/reader.h"

namespace galvani {
namespace {

using testing::dump;
using testing::error_of;

// A LeNet whose ten scores are numbers, tested on digits that all of them are right for.
class ReferenceCampaign : public ::testing::Test {
 protected:
  ReferenceCampaign() {
    Rng rng(5);
    Network::Options options;
    options.execution = {16, false};
    options.any_task = true;
    options.flags.task = "regression";
    network_ = Network::from_onnx(architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng),
                                  "lenet1", options);
    data_ = load_data("digits:test[0:40]");
    settle_labels(*network_, data_, /*own=*/true);
    tracer_ = std::make_unique<Tracer>(*network_, network_->select_taps("default"), NeuronUnit::channel);
    profile_ = learn_profile(*tracer_, Spec::parse_list("kmnc"), data_, 0, 0);
  }
  Campaign campaign(const std::string& name) {
    return Campaign(folder_ / name, testing::small_settings(), {*tracer_, data_, profile_, "the data", nullptr});
  }
  static Budget batches(std::int64_t n) {
    Budget budget;
    budget.iterations = n * 4;
    return budget;
  }
  std::unique_ptr<Network> network_;
  Dataset data_;
  std::unique_ptr<Tracer> tracer_;
  std::shared_ptr<const Profile> profile_;
  TemporaryFolder folder_;
};

TEST_F(ReferenceCampaign, SeedsKeepWhatTheyAreHeldAgainst) {
  EXPECT_GT(network_->info().question.tolerance, 0);
  campaign("a").run(batches(6), {});
  CampaignReader reader(folder_ / "a");
  ASSERT_GT(reader.counters().faults, 0);
  EXPECT_LT(reader.counters().faults, reader.counters().valid);
  EXPECT_TRUE(check_campaign(folder_ / "a").sound());
  SeedReferences references(reader, *network_);
  for (const SeedRecord& seed : reader.seeds())
    EXPECT_TRUE(at::equal(references.of({seed.id})[0], data_.answers[seed.item])) << seed.reference;
  // Every fault is one by its own file and the reference of its own seed.
  Request request;
  request.answers = true;
  for (const FaultRecord& fault : reader.faults()) {
    at::Tensor answer = network_->run(reader.image(fault).unsqueeze(0), request).answers;
    at::Tensor off = network_->info().question.deviations(answer, references.of({fault.seed}));
    EXPECT_GT(off.item<float>(), network_->info().question.tolerance * 0.999) << fault.file;
    EXPECT_NE(fault.figures.find("\"deviation\":"), std::string::npos) << fault.figures;
  }
}

TEST_F(ReferenceCampaign, GoingOnGivesTheSameStore) {
  campaign("whole").run(batches(6), {});
  campaign("pieces").run(batches(2), {});
  campaign("pieces").run(batches(6), {});
  EXPECT_EQ(dump(folder_ / "pieces"), dump(folder_ / "whole"));
}

TEST_F(ReferenceCampaign, AnotherQuestionIsRefused) {
  campaign("a").run(batches(1), {});
  CampaignReader reader(folder_ / "a");
  Network::Options options;
  Rng rng(5);
  auto classes = Network::from_onnx(
      architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng), "lenet1", options);
  EXPECT_NE(error_of([&] { SeedReferences(reader, *classes); }).find("its task is classes"), std::string::npos);
  network_->set_tolerance(network_->info().question.tolerance * 2);
  EXPECT_NE(error_of([&] { campaign("a"); }).find("tolerance"), std::string::npos);
}

TEST(References, AreTextsOfEveryDigit) {
  at::Tensor row = at::tensor({0.1F, -1234567.25F, 3e-9F, 0.0F});
  Rng rng(1);
  Network::Options options;
  options.any_task = true;
  options.flags.task = "regression";
  auto network = Network::from_onnx(architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 4}, rng),
                                    "lenet1", options);
  SeedRecord seed;
  seed.reference = reference_text(row);
  EXPECT_TRUE(at::equal(references_of({seed, seed}, *network, "x")[1], row)) << seed.reference;
  for (const char* damaged : {"", "1,2,3", "1,2,3,4,5", "1,2,3,x", "1,,2,3"}) {
    seed.reference = damaged;
    EXPECT_NE(error_of([&] { references_of({seed}, *network, "x"); }).find("it is damaged"), std::string::npos)
        << damaged;
  }
}

}  // namespace
}  // namespace galvani
