// A metric says one thing about tests: how often they break a model, how sure it is of its mistakes, how far the tests
// are from what they were made of. docs/quality.md defines every one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/data/sample.h"

namespace galvani {

class Network;

// Tests beside what they were made of, and what the model says of them.
struct TestBatch {
  SampleType type;
  at::Tensor tests;              // [N, ...type.shape] of type.dtype(), contiguous
  at::Tensor originals;          // likewise
  at::Tensor labels;             // [N] int64: what they show
  at::Tensor verdicts;           // [N] int64: what the model says; kNotANumber: scores that are not finite
  at::Tensor probabilities;      // [N, classes] float; undefined: only metrics of pixels can be taken
  at::Tensor original_verdicts;  // [N] int64; undefined unless a metric reads them

  std::int64_t size() const { return tests.size(0); }
  TestBatch rows(const std::vector<std::int64_t>& indices) const;
};

// What is known of more tests than were stored.
struct TestCounts {
  std::int64_t tests = 0;  // that were judged
  std::int64_t misclassified = 0;
  std::int64_t originals = 0;  // that were tried, all of them right
  std::int64_t broken = 0;     // of which a misclassified test was made
};
struct Share {
  std::int64_t part = 0;
  std::int64_t whole = 0;
};

enum class MetricReads {
  pixels,   // tests and originals
  scores,   // probabilities, too
  network,  // it runs the network itself
};
struct MetricTraits {
  MetricReads reads = MetricReads::pixels;
  bool of_all = false;             // of all tests, not of the misclassified alone
  bool images_only = false;        // it makes no sense of sounds
  bool original_verdicts = false;  // it reads them
};

class Metric {
 public:
  virtual ~Metric() = default;

  const std::string& id() const { return id_; }      // "ric"
  const std::string& spec() const { return spec_; }  // "ric:quality=90", every option resolved
  const std::string& help() const { return help_; }  // what it means, in a line
  virtual MetricTraits traits() const = 0;

  // A value for every test; not a number where there is none: the test is not misclassified, or nothing can be said of
  // it. The metric is the mean of the others. `network` may be null for metrics that do not run it.
  std::vector<double> values(const TestBatch& batch, Network* network) const;

  // The metric where counts are known: better than what the stored tests say.
  virtual std::optional<Share> counted(const TestCounts& counts) const { return std::nullopt; }

 private:
  friend std::unique_ptr<Metric> make_metric(const Spec& spec);

  // Of tests that are all misclassified, unless it is of_all.
  virtual std::vector<double> run(const TestBatch& batch, Network* network) const = 0;

  std::string id_;
  std::string spec_;
  std::string help_;
};

using MetricRegistry = Registry<std::unique_ptr<Metric>>;
const MetricRegistry& quality_metrics();

std::unique_ptr<Metric> make_metric(const Spec& spec);
// "acac,ric:quality=75" → two metrics. Empty: all that make sense of inputs of this kind. Usage error if one is named
// twice, or makes no sense of them.
std::vector<std::unique_ptr<Metric>> make_metrics(const std::string& specs, SampleKind kind);

}  // namespace galvani
