// CAGFuzz (3.4): a candidate is kept if it activates more neurons than what it was made of; or, as other guides do, if
// it activates one that nothing before it did.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "fuzz/builtin.h"
#include "galvani/base/error.h"
#include "galvani/base/json.h"

namespace galvani {
namespace {

class CagfuzzGuide : public Guide {
 public:
  CagfuzzGuide(const Options& options, const GuideContext& context)
      : tracer_(context.tracer),
        criterion_(make_criterion(Spec::parse(options.text("criterion")), {context.tracer.layout(), context.profile})),
        of_parent_(options.text("gain") == "parent") {
    Features none;
    if (of_parent_ && !criterion_->features(make_traces(at::empty({0, context.tracer.layout().neurons})), none))
      bad_usage(
          "cagfuzz counts what an input covers by itself, which {} does not say; take gain=total, or another "
          "criterion such as nc",
          criterion_->id());
  }

  GuideNeeds needs() const override { return {true, criterion_->needs()}; }
  std::int64_t passes() const override { return passes_; }
  Covered covered() const override { return criterion_->covered(); }
  // More than its parent a candidate can have at any time.
  bool full() const override { return !of_parent_ && Guide::full(); }

 private:
  std::vector<std::size_t> counts_of(const Traces& traces) const {
    Features features;
    criterion_->features(traces, features);
    std::vector<std::size_t> counts;
    for (std::size_t i = 0; i < features.ends.size(); ++i) counts.push_back(features.ends[i] - features.begin_of(i));
    return counts;
  }

  // Of every row's parent. Each is traced once in a call; most candidates of a call share a few.
  std::vector<std::size_t> counts_of_parents(const Judged& mutants) {
    std::vector<std::int64_t> ids = mutants.parents;
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::vector<at::Tensor> images;
    for (std::int64_t id : ids) images.push_back(mutants.corpus.image(id));
    std::vector<std::size_t> counts = counts_of(tracer_.trace(at::stack(images)));
    passes_ += static_cast<std::int64_t>(ids.size());
    std::vector<std::size_t> result;
    for (std::int64_t parent : mutants.parents)
      result.push_back(
          counts[static_cast<std::size_t>(std::lower_bound(ids.begin(), ids.end(), parent) - ids.begin())]);
    return result;
  }

  void run_absorb(const Judged& seeds, std::vector<double>& gains) override { gains = criterion_->add(seeds.traces); }

  void run(const Judged& mutants, std::vector<Decision>& decisions) override {
    std::vector<double> gains = criterion_->add(mutants.traces);
    if (!of_parent_) {
      for (std::size_t i = 0; i < gains.size(); ++i) decisions[i] = {gains[i] > 0, gains[i], ""};
      return;
    }
    std::vector<std::size_t> own = counts_of(mutants.traces), theirs = counts_of_parents(mutants);
    for (std::size_t i = 0; i < own.size(); ++i) {
      decisions[i].keep = own[i] > theirs[i];
      decisions[i].gain = static_cast<double>(own[i]) - static_cast<double>(theirs[i]);
      decisions[i].metadata = json_text({{"covered", own[i]}, {"covered by the parent", theirs[i]}});
    }
  }

  void run_reset() override { criterion_->reset(); }
  void run_merge(const Guide& other) override {
    criterion_->merge(*static_cast<const CagfuzzGuide&>(other).criterion_);
  }
  void run_save(ArchiveWriter& out) const override { criterion_->save(out); }
  void run_load(ArchiveReader& in) override { criterion_->load(in); }

  Tracer& tracer_;
  std::unique_ptr<Criterion> criterion_;
  bool of_parent_;
  std::int64_t passes_ = 0;
};

}  // namespace

GuideEntry cagfuzz_guide_entry() {
  OptionSchema schema = {
      {"gain",
       std::string("parent"),
       "what counts: more than the parent covers, or what nothing before covered",
       {},
       {},
       {"parent", "total"}},
      {"criterion", std::string("nc"), "what is counted, such as nc:threshold=0.5", {}, {}, {}},
  };
  return {{"cagfuzz", "keeps what activates more neurons than its parent (CAGFuzz)", schema,
           [](const Options& options, const GuideContext& context) -> std::unique_ptr<Guide> {
             return std::make_unique<CagfuzzGuide>(options, context);
           }},
          {[](const Options& options) { return std::vector<Spec>{Spec::parse(options.text("criterion"))}; },
           [](const Options&) {
             GuideDefaults defaults;
             defaults.generator = "aeg";
             defaults.scheduler = "newest";
             return defaults;
           }}};
}

}  // namespace galvani
