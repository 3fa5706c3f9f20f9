// Where tests come from, beside what they were made of: a campaign's faults, or two sets of inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/fuzz/reader.h"
#include "galvani/quality/metric.h"

namespace galvani {

struct TestRows {
  at::Tensor tests;      // [N, ...type.shape] of type.dtype()
  at::Tensor originals;  // likewise
  at::Tensor labels;     // [N] int64
};

class TestSet {
 public:
  virtual ~TestSet() = default;
  const std::string& name() const { return name_; }
  const SampleType& type() const { return type_; }
  // For every test what it was made of: tests of one original have the same number.
  const std::vector<std::int64_t>& groups() const { return groups_; }
  std::int64_t size() const { return static_cast<std::int64_t>(groups_.size()); }

  // What a test is called where it came from: a fault's id, or its row.
  virtual std::int64_t id(std::int64_t row) const { return row; }
  // What is known of this model on more tests than there are here; nothing of any other.
  virtual std::optional<TestCounts> counts(const Network& network) const { return std::nullopt; }
  // Error(bad_input) if a file of one is gone or damaged.
  virtual TestRows fetch(const std::vector<std::int64_t>& rows) const = 0;

 protected:
  TestSet(std::string name, SampleType type) : name_(std::move(name)), type_(std::move(type)) {}
  std::vector<std::int64_t> groups_;

 private:
  std::string name_;
  SampleType type_;
};

// The distinct faults of a campaign, beside their seeds. The reader must outlive it.
std::unique_ptr<TestSet> campaign_tests(const CampaignReader& reader);

// Row i was made of row i. Labels are those of the originals, or of the tests if they have none; usage error if there
// are not as many of both, they differ in shape, or neither has labels.
std::unique_ptr<TestSet> paired_tests(const DataView& tests, const DataView& originals);

}  // namespace galvani
