// Which candidates are worth keeping.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/archive.h"
#include "galvani/base/registry.h"
#include "galvani/coverage/criterion.h"
#include "galvani/fuzz/corpus.h"
#include "galvani/fuzz/settings.h"
#include "galvani/trace/trace.h"

namespace galvani {

// What a guide is told about candidates (or, at the beginning, seeds), one row each, in the order they are decided.
struct Judged {
  at::Tensor images;     // [N, ...] as files hold them
  at::Tensor logits;     // [N, classes] float
  at::Tensor predicted;  // [N] int64: the verdicts that count, those of `traces`, too
  Traces traces;         // undefined values unless the guide asked for them
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> parents;     // entries of the corpus; a seed is its own
  std::vector<std::int64_t> seeds;       // likewise
  std::vector<std::int64_t> iterations;  // candidates of one pick share it; 0: seeds
  Corpus& corpus;                        // images of parents and seeds
  at::Tensor answers = {};               // [N, outputs] float, of a task by reference

  std::int64_t size() const { return images.size(0); }
};

struct Decision {
  bool keep = false;
  double gain = 0;       // what it adds, in the guide's own unit
  std::string metadata;  // why, as a JSON object: stored with the entry, shown in the report; empty: nothing to say
};

struct GuideNeeds {
  bool traces = false;  // neuron values of every candidate
  TraceNeeds more;
};

class Guide {
 public:
  virtual ~Guide() = default;

  const std::string& id() const { return id_; }      // "kmnc"
  const std::string& spec() const { return spec_; }  // every option resolved
  virtual GuideNeeds needs() const = 0;
  // What it depends on in files, as one SHA-256; empty: nothing.
  virtual std::string files_sha256() const { return ""; }
  // Forward passes of inputs it has run itself.
  virtual std::int64_t passes() const { return 0; }

  // Rows whose scores or traces are not finite are never shown to a guide: they gain nothing and are not kept.

  // What the initial corpus covers; the gain of each seed. In one call or several. Every guide is shown the seeds.
  std::vector<double> absorb(const Judged& seeds);
  // Row by row as if each were alone, so that cutting a batch into several calls changes nothing.
  std::vector<Decision> decide(const Judged& mutants);

  virtual Covered covered() const = 0;
  // Everything that can be covered is.
  virtual bool full() const;
  void reset() { run_reset(); }
  // Takes in what another guide of the same spec has covered, such as that of another worker.
  void merge(const Guide& other);

  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  friend class GuideMaker;
  virtual void run_absorb(const Judged& seeds, std::vector<double>& gains) = 0;
  virtual void run(const Judged& mutants, std::vector<Decision>& decisions) = 0;
  virtual void run_reset() = 0;
  virtual void run_merge(const Guide& other) = 0;
  virtual void run_save(ArchiveWriter& out) const = 0;
  virtual void run_load(ArchiveReader& in) = 0;

  std::string id_;
  std::string spec_;
};

// What a guide is made for. The profile may be null where no criterion needs one.
struct GuideContext {
  Tracer& tracer;  // passes of its own are run with it or its network
  std::shared_ptr<const Profile> profile;
  const Dataset& data;  // where the seeds come from
  std::vector<std::string> class_names;
  std::uint64_t seed = 0;  // of the campaign
  std::string generator;   // its spec
};

// What a guide's paper uses along with it, for settings that the user left open.
struct GuideDefaults {
  std::string generator = "mutate";
  std::string scheduler = "sweep";
};

// Known of a guide before there is one. Empty functions: no criteria, the usual defaults.
struct GuideTraits {
  std::function<std::vector<Spec>(const Options&)> criteria;
  std::function<GuideDefaults(const Options&)> defaults;
};

using GuideRegistry = Registry<std::unique_ptr<Guide>, const GuideContext&>;
// Every coverage criterion by its own spec, `random`, `deephunter`.
// A program may add its own.
GuideRegistry& guides();
std::unique_ptr<Guide> make_guide(const Spec& spec, const GuideContext& context);

// The criteria behind a guide, whose profile it needs.
std::vector<Spec> guide_criteria(const Spec& guide);
GuideDefaults guide_defaults(const Spec& guide);

}  // namespace galvani
