#include "galvani/report/replay.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/dataset.h"
#include "galvani/report/export.h"
#include "galvani/report/junit.h"
#include "report/testing.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

// What is done with a campaign that was run.
class RunTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_folder = new TemporaryFolder("replay");
    subject = new testing::FuzzedSubject();
    subject->fuzz(*shared_folder / "run");
  }
  static void TearDownTestSuite() {
    delete subject;
    delete shared_folder;
  }
  static CampaignReader reader() { return CampaignReader(*shared_folder / "run"); }
  static double figure(const Replay& replay, const std::string& name) {
    return Gate(name + ">0").value(figures_of(replay));
  }
  static TemporaryFolder* shared_folder;
  static testing::FuzzedSubject* subject;
};
TemporaryFolder* RunTest::shared_folder = nullptr;
testing::FuzzedSubject* RunTest::subject = nullptr;

TEST_F(RunTest, EveryFaultFailsAgain) {
  std::int64_t faults = reader().counters().faults;
  ASSERT_GT(faults, 20);
  Replay replay = replay_faults(reader(), *subject->network);
  EXPECT_TRUE(replay.same_model);
  EXPECT_TRUE(replay.good());
  EXPECT_EQ(replay.faults, faults);
  EXPECT_EQ(replay.fail, faults);
  EXPECT_EQ(replay.as_before, faults);
  EXPECT_EQ(figure(replay, "transfer-rate"), 1);
  EXPECT_EQ(figure(replay, "unreadable"), 0);
}

TEST_F(RunTest, AMissingFileIsNamed) {
  fs::path copy = *shared_folder / "damaged";
  fs::copy(*shared_folder / "run", copy, fs::copy_options::recursive);
  std::string file;
  std::int64_t sharing = 0;  // faults with the same pixels share a file
  for (const FaultRecord& fault : reader().faults()) {
    if (file.empty()) file = fault.file;
    sharing += fault.file == file ? 1 : 0;
  }
  fs::remove(copy / file);
  Replay replay = replay_faults(CampaignReader(copy), *subject->network);
  EXPECT_FALSE(replay.good());
  ASSERT_EQ(static_cast<std::int64_t>(replay.unreadable.size()), sharing);
  EXPECT_NE(replay.unreadable[0].find(file), std::string::npos);
  EXPECT_EQ(replay.fail, replay.faults - sharing);
}

TEST_F(RunTest, AnotherModelIsAskedAboutTheSeedsToo) {
  Rng rng(77);
  auto make = [&](std::int64_t classes) {
    std::string bytes = architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, classes}, rng);
    return Network::from_onnx(std::move(bytes), "other", {});
  };
  auto other = make(10);
  Replay replay = replay_faults(reader(), *other);
  EXPECT_FALSE(replay.same_model);
  EXPECT_TRUE(replay.good()) << "another model need not fail";
  std::int64_t right = 0;
  std::int64_t right_fail = 0;
  for (const FaultRecord& fault : reader().faults()) {
    auto says = [&](const at::Tensor& image) {
      return predict(*other, image.unsqueeze(0)).labels.item<std::int64_t>();
    };
    if (says(reader().image(fault.seed)) != fault.label) continue;
    ++right;
    right_fail += says(reader().image(fault)) != fault.label ? 1 : 0;
  }
  std::vector<FaultRecord> faults = reader().faults();
  ASSERT_EQ(replay.each.size(), faults.size());
  std::int64_t failing = 0;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const ReplayedFault& now = replay.each[i];
    EXPECT_EQ(now.id, faults[i].id);
    EXPECT_EQ(now.before, faults[i].predicted);
    EXPECT_EQ(now.now, predict(*other, reader().image(faults[i]).unsqueeze(0)).labels.item<std::int64_t>());
    failing += now.fails() ? 1 : 0;
  }
  EXPECT_EQ(failing, replay.fail);
  EXPECT_EQ(replay.seed_right, right);
  EXPECT_EQ(replay.seed_right_fail, right_fail);
  auto small = make(7);
  EXPECT_THROW(replay_faults(reader(), *small), Error);
}

TEST_F(RunTest, ExportedFaultsComeBackAsData) {
  CampaignReader run = reader();
  std::vector<FaultRecord> faults = run.faults();
  for (ExportForm form : {ExportForm::npz, ExportForm::folder}) {
    fs::path output = *shared_folder / (form == ExportForm::npz ? "faults.npz" : "faults");
    EXPECT_EQ(export_campaign(run, {form, false, false}, output), static_cast<std::int64_t>(faults.size()));
    Dataset data = load_data(output.string());
    ASSERT_EQ(data.size(), static_cast<std::int64_t>(faults.size()));
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const FaultRecord& fault = faults[static_cast<std::size_t>(i)];
      EXPECT_EQ(data.labels[i].item<std::int64_t>(), fault.label);
      EXPECT_TRUE(at::equal(data.images[i], run.image(fault)));
    }
  }
  std::int64_t distinct = run.counters().distinct_faults;
  EXPECT_EQ(export_campaign(run, {ExportForm::csv, false, true}, *shared_folder / "faults.csv"), distinct);
  std::string table = read_file(*shared_folder / "faults.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), distinct + 1);
  EXPECT_EQ(export_campaign(run, {ExportForm::csv, true, false}, *shared_folder / "outputs.csv"), run.counters().kept);
}

TEST_F(RunTest, ConditionsAsJunit) {
  Figures figures = {{"faults", 3}, {"oi", 0.5}};
  std::vector<Gate> gates = parse_gates({"faults>0", "oi<0.5"}, names_of(figures));
  std::string text = junit_xml({"a <suite>", "run", 1.5, {"one & two"}}, gates, figures);
  EXPECT_EQ(text,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "  <testsuite name=\"a &lt;suite&gt;\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"1.500\">\n"
            "    <testcase name=\"not faults&gt;0\" classname=\"run\" time=\"1.500\">\n"
            "      <failure message=\"faults&gt;0: it is 3\">\none &amp; two\n      </failure>\n    </testcase>\n"
            "    <testcase name=\"not oi&lt;0.5\" classname=\"run\" time=\"1.500\"/>\n"
            "  </testsuite>\n</testsuites>\n");
  text = junit_xml({"s", "run", 0, {}, {{"0", "", ""}, {"1 <", "wrong &", ""}, {"2", "", "before"}}}, {}, figures);
  EXPECT_EQ(text,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "  <testsuite name=\"s\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"0.000\">\n"
            "    <testcase name=\"0\" classname=\"run\"/>\n"
            "    <testcase name=\"1 &lt;\" classname=\"run\"><failure message=\"wrong &amp;\"/></testcase>\n"
            "    <testcase name=\"2\" classname=\"run\"><skipped message=\"before\"/></testcase>\n"
            "  </testsuite>\n</testsuites>\n");
  std::vector<std::string> lines = fault_lines(reader(), 3);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].rfind("faults/00000001-", 0), 0U) << lines[0];
}

}  // namespace
}  // namespace galvani
