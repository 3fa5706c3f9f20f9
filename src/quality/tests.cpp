#include "galvani/quality/tests.h"

#include <ATen/ATen.h>

#include <map>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "galvani/base/parallel.h"
#include "galvani/model/network.h"

namespace galvani {
namespace {

class CampaignTests : public TestSet {
 public:
  CampaignTests(const CampaignReader& reader, SampleType type)
      : TestSet(reader.folder().string(), std::move(type)), reader_(reader) {
    FaultFilter filter;
    filter.distinct_only = true;
    reader.for_each_fault(filter, [&](const FaultRecord& fault) {
      ids_.push_back(fault.id);
      groups_.push_back(fault.seed);
    });
  }

  std::optional<TestCounts> counts(const Network& network) const override {
    if (network.info().sha256 != reader_.record().model_sha256) return std::nullopt;
    CampaignCounters counters = reader_.counters();
    SeedFigures seeds = reader_.seed_figures();
    // An attack shows the network only what fooled it on the way, so its tests are the inputs it was let loose on.
    bool attack = Spec::parse(reader_.record().settings.generator).name == "attack";
    return attack ? TestCounts{seeds.tried, seeds.broken, seeds.tried, seeds.broken}
                  : TestCounts{counters.valid, counters.faults, seeds.tried, seeds.broken};
  }

  std::int64_t id(std::int64_t row) const override { return ids_[static_cast<std::size_t>(row)]; }

  TestRows fetch(const std::vector<std::int64_t>& rows) const override {
    std::vector<FaultRecord> faults;
    std::map<std::int64_t, at::Tensor> seeds;
    for (std::int64_t row : rows) {
      faults.push_back(reader_.fault(ids_[static_cast<std::size_t>(row)]));
      at::Tensor& seed = seeds[faults.back().seed];
      if (!seed.defined()) seed = reader_.image(faults.back().seed);
    }
    std::vector<at::Tensor> tests(faults.size()), originals;
    workers().run(static_cast<std::int64_t>(faults.size()), [&](std::int64_t i, int) {
      tests[static_cast<std::size_t>(i)] = reader_.image(faults[static_cast<std::size_t>(i)]);
    });
    std::vector<std::int64_t> labels;
    for (const FaultRecord& fault : faults) {
      originals.push_back(seeds[fault.seed]);
      labels.push_back(fault.label);
    }
    return {at::stack(tests), at::stack(originals), at::tensor(labels, at::kLong)};
  }

 private:
  const CampaignReader& reader_;
  std::vector<std::int64_t> ids_;
};

class PairedTests : public TestSet {
 public:
  PairedTests(const DataView& tests, const DataView& originals)
      : TestSet(tests.name, tests.type()),
        tests_(tests),
        originals_(originals),
        labels_(originals.labelled() ? originals.labels : tests.labels) {
    groups_.resize(static_cast<std::size_t>(tests.size()));
    std::iota(groups_.begin(), groups_.end(), std::int64_t{0});
  }

  TestRows fetch(const std::vector<std::int64_t>& rows) const override {
    return {tests_.fetch(rows), originals_.fetch(rows), labels_.index_select(0, at::tensor(rows, at::kLong))};
  }

 private:
  DataView tests_;
  DataView originals_;
  at::Tensor labels_;
};

}  // namespace

std::unique_ptr<TestSet> campaign_tests(const CampaignReader& reader) {
  if (reader.seeds().empty()) bad_input("{}: the campaign has no seeds yet", reader.folder().string());
  return std::make_unique<CampaignTests>(reader, reader.type());
}

std::unique_ptr<TestSet> paired_tests(const DataView& tests, const DataView& originals) {
  if (tests.size() != originals.size())
    bad_usage("{} has {} inputs and {} has {}: tests and originals are pairs, in the same order", tests.name,
              tests.size(), originals.name, originals.size());
  if (tests.type() != originals.type())
    bad_usage("{} has inputs of {} and {} of {}: a test has the shape of its original", tests.name,
              tests.type().shape_text(), originals.name, originals.type().shape_text());
  if (!tests.labelled() && !originals.labelled())
    bad_input("{}: has no labels, and {} has none either: what the tests show must be known", originals.name,
              tests.name);
  return std::make_unique<PairedTests>(tests, originals);
}

}  // namespace galvani
