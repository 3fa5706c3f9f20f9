// A coverage criterion reads traces and says how much of the network's behaviour they exercise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/base/archive.h"
#include "galvani/base/registry.h"
#include "galvani/coverage/features.h"
#include "galvani/trace/trace.h"

namespace galvani {

class Profile;

// How much is covered; `total` 0 means that the count has no upper end.
struct Covered {
  double covered = 0;
  double total = 0;
  double score() const { return total > 0 ? covered / total : covered; }
};

// "71.23%" of what can be covered, or a plain number where there is no end.
std::string coverage_text(const Covered& amount);

struct TapCovered {
  std::string tap;
  Covered amount;
};

// Which laws a criterion keeps; the contract tests hold it to them.
struct CriterionTraits {
  bool order_free = true;  // the state does not depend on the order of inputs
  bool merges = true;      // states of two halves merge to the state of the whole
  bool monotone = true;    // no input lowers the score
  // The inputs that gained something, in order, lead to the same state as all: no other input counts.
  bool gainers_suffice = true;
};

class Criterion {
 public:
  virtual ~Criterion() = default;

  const std::string& id() const { return id_; }      // "kmnc"
  const std::string& spec() const { return spec_; }  // "kmnc:k=1000", every option resolved
  virtual CriterionTraits traits() const { return {}; }
  virtual TraceNeeds needs() const { return {}; }

  // Adds a batch in order. The gain of an input is what it covers that nothing before it did, inside the batch too, in
  // the unit of covered().covered; inputs with NaN or infinite traces are dropped, counted and gain nothing.
  std::vector<double> add(const Traces& traces);

  // What each input of a batch covers, whatever was covered before. False if the criterion is not a set of features.
  bool features(const Traces& traces, Features& out) const;
  virtual const FeatureSet* covered_features() const { return nullptr; }

  virtual Covered covered() const = 0;
  virtual std::vector<TapCovered> by_tap() const = 0;
  double score() const { return covered().score(); }
  std::int64_t inputs() const { return inputs_; }    // added, without the dropped ones
  std::int64_t dropped() const { return dropped_; }  // not finite
  // What a user should know, such as a ridge that a singular covariance needed.
  virtual std::vector<std::string> notes() const { return {}; }

  void reset();
  // Takes in what another state of the same criterion covers; usage error if it is of another spec or layout.
  void merge(const Criterion& other);
  std::unique_ptr<Criterion> fresh() const;  // the same criterion with nothing covered yet

  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

  struct Identity {
    std::string id;
    std::string spec;
  };

 protected:
  explicit Criterion(TraceLayout layout) : layout_(std::move(layout)) {}
  const TraceLayout& layout() const { return layout_; }

 private:
  friend class CriterionMaker;

  // gains[i] of usable inputs; the others stay 0.
  virtual void run(const Traces& traces, std::vector<double>& gains) = 0;
  virtual bool run_features(const Traces& traces, Features& out) const;
  virtual void run_reset() = 0;
  virtual void run_merge(const Criterion& other) = 0;
  virtual void run_save(ArchiveWriter& out) const = 0;
  virtual void run_load(ArchiveReader& in) = 0;

  void check(const Traces& traces) const;

  TraceLayout layout_;
  std::string id_;
  std::string spec_;
  std::shared_ptr<const Profile> profile_;
  std::int64_t inputs_ = 0;
  std::int64_t dropped_ = 0;
};

// What a criterion is made for: a layout, and what is known of the training data (may be null where none is needed).
struct CriterionContext {
  const TraceLayout& layout;
  std::shared_ptr<const Profile> profile;
};

using CriterionRegistry = Registry<std::unique_ptr<Criterion>, const CriterionContext&>;
const CriterionRegistry& criteria();

std::unique_ptr<Criterion> make_criterion(const Spec& spec, const CriterionContext& context);
// "kmnc:k=1000,nlc" → two criteria.
std::vector<std::unique_ptr<Criterion>> make_criteria(const std::string& specs, const CriterionContext& context);

// Saved states of several criteria in one file, bound to the model and taps they belong to.
void save_states(const std::filesystem::path& path, const std::vector<std::unique_ptr<Criterion>>& criteria,
                 const TraceLayout& layout);
// Merges the file's states into the criteria; they must be the same ones.
void merge_states(const std::filesystem::path& path, const std::vector<std::unique_ptr<Criterion>>& criteria,
                  const TraceLayout& layout);

}  // namespace galvani
