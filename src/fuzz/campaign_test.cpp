#include "galvani/fuzz/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "fuzz/state.h"
#include "fuzz/testing.h"
#include "fuzz/testing_campaign.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/fuzz/check.h"
#include "galvani/fuzz/reader.h"
#include "galvani/fuzz/scheduler.h"
#include "galvani/fuzz/summary.h"
#include "galvani/generate/generator.h"
#include "galvani/mutate/engine.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

using testing::CampaignTest;

TEST_F(CampaignTest, TheStoreHoldsWhatHappened) {
  CampaignSettings settings = testing::small_settings("random");
  settings.generator = "mutate:set=(nsgen,noise:sigma=60)";
  EXPECT_EQ(run("a", 6, settings), "24 iterations are done");
  CampaignReader reader(folder_ / "a");
  CampaignCounters c = reader.counters();
  EXPECT_EQ(c.batches, 6);
  EXPECT_EQ(c.iterations, 24);
  EXPECT_EQ(c.mutants, 24 * 8);
  EXPECT_EQ(c.kept, c.valid);
  EXPECT_EQ(c.kept_faults, c.faults);
  ASSERT_GT(c.faults, 0) << "the subject should be easy to break";
  EXPECT_EQ(reader.seeds().size(), 20U);
  for (const WrongSeedRecord& wrong : reader.wrong_seeds()) EXPECT_LT(wrong.item, 4) << "only these have other labels";
  EXPECT_EQ(reader.timeline().size(), 7U);
  EXPECT_EQ(reader.timeline(3).size(), 3U);
  EXPECT_EQ(reader.timeline(3).back().batches, 6);
  std::int64_t picks = 0;
  for (const SeedRecord& seed : reader.seeds()) {
    picks += seed.picks;
    EXPECT_TRUE(at::equal(reader.image(seed.id), subject_.data.images[seed.item]));
  }
  std::map<std::int64_t, InputRecord> inputs;
  reader.for_each_input([&](const InputRecord& input) {
    inputs[input.id] = input;
    picks += input.picks;
  });
  EXPECT_EQ(picks, 24);
  EXPECT_EQ(static_cast<std::int64_t>(inputs.size()), c.kept);

  // Lineages lead from the seed to the stored pixels, and the model is wrong about these alone.
  MutationContext context{SampleType::image(1, 28, 28), {}};
  MutationEngine engine("nsgen,noise:sigma=60", context);
  std::vector<FaultRecord> faults = reader.faults();
  EXPECT_EQ(static_cast<std::int64_t>(faults.size()), c.faults);
  std::int64_t distinct = 0;
  for (const FaultRecord& fault : faults) {
    distinct += fault.distinct ? 1 : 0;
    Lineage lineage = reader.lineage(fault);
    EXPECT_EQ(lineage.seed, fault.seed);
    std::vector<Rule> rules;
    for (const std::string& rule : lineage.rules) rules.push_back(engine.set().parse(rule));
    Parent made = engine.replay(reader.image(fault.seed), rules);
    at::Tensor image = reader.image(fault);
    EXPECT_TRUE(at::equal(made.image, image)) << fault.file;
    EXPECT_EQ(made.affine_used, fault.affine);
    EXPECT_TRUE(engine.valid(made.reference, image)) << fault.file;
    EXPECT_TRUE(at::equal(reader.image(fault.input), image));
    Request alone;
    alone.alone = true;
    auto verdict = subject_.network->run(image.unsqueeze(0), alone).logits.argmax(1).item<std::int64_t>();
    EXPECT_EQ(verdict, fault.predicted);
    EXPECT_NE(verdict, fault.label);
    EXPECT_EQ(fault.sha256, sha256({static_cast<const char*>(image.data_ptr()), 784}));
  }
  EXPECT_EQ(distinct, c.distinct_faults);
  CampaignSummary summary = summarise(reader);
  EXPECT_DOUBLE_EQ(summary.rft, static_cast<double>(c.kept_faults) / static_cast<double>(c.kept));
  EXPECT_DOUBLE_EQ(summary.rft_all, static_cast<double>(c.faults) / static_cast<double>(c.valid));
  std::int64_t mutants = 0, found = 0;
  for (const YieldRecord& yield : reader.kinds()) {
    mutants += yield.mutants;
    found += yield.faults;
  }
  EXPECT_EQ(mutants, c.mutants);
  EXPECT_EQ(found, c.faults);
  FaultFilter filter;
  filter.label = faults[0].label;
  for (const FaultRecord& fault : reader.faults(filter)) EXPECT_EQ(fault.label, faults[0].label);
}

TEST_F(CampaignTest, TheNumberOfThreadsChangesNothing) {
  std::string expected;
  for (int threads : {1, 2, 4}) {
    set_workers(threads);
    std::string name = "t" + std::to_string(threads);
    run(name, 5, testing::small_settings());
    if (threads == 1) expected = dump(name);
    EXPECT_EQ(dump(name), expected) << threads;
  }
  CampaignSettings other = testing::small_settings();
  other.seed = 12;
  run("other", 5, other);
  EXPECT_NE(dump("other"), expected) << "another seed is another campaign";
}

TEST_F(CampaignTest, FaultsBeyondTheFilesAreInTheStore) {
  CampaignSettings settings = testing::small_settings();
  run("all", 6, settings);
  settings.keep_files = 7;
  run("some", 6, settings);
  run_and_kill("some-killed", 2, settings);
  run("some-killed", 6, settings);
  EXPECT_EQ(dump("some-killed"), dump("some"));
  CampaignReader all(folder_ / "all"), some(folder_ / "some");
  std::vector<FaultRecord> faults = all.faults(), others = some.faults();
  ASSERT_EQ(faults.size(), others.size());
  std::int64_t distinct = 0, shared_in_store = 0;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const FaultRecord& fault = others[i];
    EXPECT_EQ(fault.sha256, faults[i].sha256);
    EXPECT_TRUE(at::equal(some.image(fault), all.image(faults[i]))) << fault.id;
    bool has_file = fs::exists(folder_ / "some" / fault.file);
    if (fault.distinct) {
      EXPECT_EQ(has_file, ++distinct <= 7) << "the first ones have a file";
    }
    shared_in_store += !fault.distinct && !has_file ? 1 : 0;
  }
  EXPECT_GT(distinct, 7);
  EXPECT_GT(shared_in_store, 0) << "the subject shows nothing of faults that share an image";
  EXPECT_TRUE(check_campaign(folder_ / "some").sound());
  // Going on takes nothing for lost, and no file is added.
  run("some", 8, settings);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "some/faults"), {}), 7);
  settings.keep_files = 8;
  EXPECT_NE(testing::error_of([&] { run("some", 9, settings); }).find("keep-files is 7"), std::string::npos);
  // An image that was changed in the store is found.
  {
    Database database(folder_ / "some/campaign.db", Database::Mode::write);
    database.execute(
        "UPDATE fault_images SET image = (SELECT image FROM seeds WHERE id = 1) WHERE id = (SELECT max(id) FROM "
        "fault_images)");
    database.execute("INSERT INTO fault_images VALUES(1000000, x'00')");
  }
  CheckReport report = check_campaign(folder_ / "some");
  auto named = [&](const char* words) {
    return std::any_of(report.damage.begin(), report.damage.end(),
                       [&](const std::string& text) { return text.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(named("image of fault") && named("holds other pixels")) << report.damage.size();
  EXPECT_TRUE(named("1 row of fault_images belong to no fault"));
}

TEST_F(CampaignTest, KilledAndGoneOnWithIsTheSame) {
  for (const std::string guide : {"kmnc", "nlc", "random"}) {
    for (const std::string scheduler : {"decay", "coverage"}) {
      CampaignSettings settings = testing::small_settings(guide);
      settings.scheduler = scheduler;
      std::string name = guide + scheduler;
      run(name, 10, settings);
      // Killed after the fourth batch with no snapshot, after the seventh with one of every batch.
      run_and_kill(name + "-killed", 4, settings);
      EXPECT_TRUE(Snapshots(folder_ / (name + "-killed"), "").batches().empty());
      run_and_kill(name + "-killed", 7, settings, 0);
      EXPECT_FALSE(Snapshots(folder_ / (name + "-killed"), "").batches().empty());
      run(name + "-killed", 10, settings);
      EXPECT_EQ(dump(name + "-killed"), dump(name)) << guide << " " << scheduler;
    }
  }
}

TEST_F(CampaignTest, DamagedSnapshotsAndFilesAreMadeAgain) {
  CampaignSettings settings = testing::small_settings("random");
  run("whole", 8, settings);
  run_and_kill("hurt", 6, settings, 0);
  fs::path state = folder_ / "hurt" / "state";
  std::vector<fs::path> snapshots;
  for (const auto& entry : fs::directory_iterator(state)) {
    if (entry.is_regular_file()) snapshots.push_back(entry.path());
  }
  ASSERT_EQ(snapshots.size(), 2U);
  std::sort(snapshots.begin(), snapshots.end());
  std::string bytes = read_file(snapshots[1]);
  bytes[bytes.size() / 2] ^= 1;
  write_file(snapshots[1], bytes);
  write_file(snapshots[0], "");
  write_file(state / "snapshot-00000099", "of a batch that was never stored");
  // Everything is repeated from the beginning, and a fault's file that is gone comes back.
  FaultRecord fault = CampaignReader(folder_ / "hurt").faults().at(0);
  fs::remove(folder_ / "hurt" / fault.file);
  run("hurt", 8, settings);
  EXPECT_EQ(dump("hurt"), dump("whole"));
  EXPECT_TRUE(fs::exists(folder_ / "hurt" / fault.file));
}

TEST_F(CampaignTest, LostFilesAreMadeAgain) {
  CampaignSettings settings = testing::small_settings("random");
  run("a", 8, settings);
  std::vector<FaultRecord> faults = CampaignReader(folder_ / "a").faults();
  ASSERT_GT(faults.size(), 2U);
  fs::path lost = folder_ / "a" / faults.front().file;
  fs::path empty = folder_ / "a" / faults.back().file;
  std::string first = read_file(lost);
  std::string second = read_file(empty);
  fs::remove(lost);
  write_file(empty, "");
  run("a", 8, settings);
  EXPECT_EQ(read_file(lost), first);
  EXPECT_EQ(read_file(empty), second);
}

TEST_F(CampaignTest, AnotherCampaignInTheFolderIsRefused) {
  CampaignSettings settings = testing::small_settings();
  run("a", 1, settings);
  settings.energy = 9;
  settings.guide = "nc";
  std::string message = testing::error_of([&] { run("a", 2, settings); });
  EXPECT_NE(message.find("guide is kmnc:k=100 there and nc:"), std::string::npos) << message;
  EXPECT_NE(message.find("energy is 8 there and 9 here"), std::string::npos) << message;
  subject_.data.labels[30] = (subject_.data.labels[30] + 1).remainder(10);
  message = testing::error_of([&] { run("a", 2, testing::small_settings()); });
  EXPECT_NE(message.find("the data has another content"), std::string::npos) << message;
}

TEST_F(CampaignTest, OneProcessAtATime) {
  Campaign first(folder_ / "a", testing::small_settings(), subject_.view());
  std::string message = testing::error_of([&] { run("a", 1, testing::small_settings()); });
  EXPECT_NE(message.find("another process"), std::string::npos) << message;
}

TEST_F(CampaignTest, ASaturatedGuideStartsAgain) {
  CampaignSettings settings = testing::small_settings("nc:threshold=-1");  // full with the first input
  run("stuck", 4, settings);
  EXPECT_EQ(CampaignReader(folder_ / "stuck").counters().kept, 0);
  settings.reset_when_full = true;
  Campaign campaign(folder_ / "again", settings, subject_.view());
  Budget budget;
  budget.outputs = 3;
  EXPECT_EQ(campaign.run(budget, {}), "3 mutants are kept");
  CampaignCounters c = CampaignReader(folder_ / "again").counters();
  EXPECT_EQ(c.kept, 3);
  EXPECT_GE(c.resets, 3);
  // One that is not full but gains nothing any more.
  settings.guide = "nc:threshold=1";
  settings.patience = 8;
  run("patient", 6, settings);
  EXPECT_EQ(CampaignReader(folder_ / "patient").counters().resets, 3);
}

TEST_F(CampaignTest, APickCanEndWithItsFirstKeptMutant) {
  CampaignSettings settings = testing::small_settings("kmnc:k=7");
  settings.stop_at_kept = true;
  run("a", 6, settings);
  CampaignReader reader(folder_ / "a");
  std::map<std::int64_t, std::int64_t> slot;  // of a pick's kept mutant
  reader.for_each_input([&](const InputRecord& input) {
    EXPECT_TRUE(slot.emplace(input.iteration, input.slot).second) << "two are kept of pick " << input.iteration;
  });
  CampaignCounters c = reader.counters();
  ASSERT_GT(slot.size(), 2U);
  ASSERT_LT(slot.size(), 24U);
  std::int64_t made = (c.iterations - static_cast<std::int64_t>(slot.size())) * settings.energy;
  for (const auto& [iteration, number] : slot) made += number + 1;
  EXPECT_EQ(c.mutants, made);
  reader.for_each_fault({}, [&](const FaultRecord& fault) {
    if (slot.count(fault.iteration) == 1) {
      EXPECT_LE(fault.slot, slot[fault.iteration]);
    }
  });
  // Killed and gone on with, it comes to the same.
  run_and_kill("b", 3, settings, 0);
  run("b", 6, settings);
  EXPECT_EQ(dump("b"), dump("a"));
  // A guide that keeps everything is content with one mutant of each.
  settings.guide = "random";
  run("c", 6, settings);
  c = CampaignReader(folder_ / "c").counters();
  EXPECT_EQ(c.kept, 24);
  EXPECT_EQ(c.valid, 24);
}

// A guide of a paper brings what the paper uses along with it, from C++ as on the command line.
TEST_F(CampaignTest, WhatIsLeftOpenComesFromTheGuide) {
  CampaignSettings settings = testing::small_settings("deephunter:group=n");
  settings.energy = 0;
  Campaign open(folder_ / "open", settings, subject_.view());
  EXPECT_EQ(open.record().settings.generator, resolved_generator(Spec::parse("mutate:set=deephunter:group=n")));
  EXPECT_EQ(open.record().settings.scheduler, schedulers().options(Spec::parse("decay")).str());
  EXPECT_EQ(open.record().settings.energy, 64);
  settings.scheduler = "newest";
  settings.generator = "swarm:population=3,generations=2";
  Campaign chosen(folder_ / "chosen", settings, subject_.view());
  EXPECT_EQ(chosen.record().settings.scheduler, schedulers().options(Spec::parse("newest")).str());
  EXPECT_EQ(chosen.record().settings.generator, resolved_generator(Spec::parse(settings.generator)));
  EXPECT_EQ(chosen.record().settings.energy, usual_energy(settings.generator));
}

TEST_F(CampaignTest, ImagesThatDoNotFitTheCacheComeFromTheStore) {
  CampaignSettings settings = testing::small_settings("random");
  run("large", 6, settings);
  CampaignOptions options;
  options.cache_bytes = 2000;  // two images
  Campaign campaign(folder_ / "small", settings, subject_.view(), options);
  campaign.run(batches(6), {});
  EXPECT_EQ(dump("small"), dump("large"));
}

TEST_F(CampaignTest, DamagedFoldersAreBadInput) {
  run("a", 1, testing::small_settings());
  fs::copy(folder_ / "a", folder_ / "cut", fs::copy_options::recursive);
  write_file(folder_ / "cut/campaign.db", std::string(5000, 'x'));
  EXPECT_NE(testing::error_of([&] { CampaignReader reader(folder_ / "cut"); }).find("campaign.db"), std::string::npos);
  EXPECT_NE(testing::error_of([&] { run("cut", 1, testing::small_settings()); }).find("campaign.db"),
            std::string::npos);
  fs::remove(folder_ / "cut/campaign.db");
  EXPECT_NE(testing::error_of([&] { CampaignReader reader(folder_ / "cut"); }).find("missing"), std::string::npos);
  write_file(folder_ / "model.onnx", "");
  EXPECT_NE(testing::error_of([&] { CampaignReader reader(folder_ / "model.onnx"); }).find("is a file, but a campaign"),
            std::string::npos);
  EXPECT_NE(testing::error_of([&] { CampaignReader reader(folder_ / "nowhere"); }).find("no such folder"),
            std::string::npos);
}

}  // namespace
}  // namespace galvani
