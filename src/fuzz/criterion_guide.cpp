// Coverage as a guide: a mutant is kept if it covers what nothing before it did.
#include "fuzz/builtin.h"

namespace galvani {
namespace {

class CriterionGuide : public Guide {
 public:
  explicit CriterionGuide(std::unique_ptr<Criterion> criterion) : criterion_(std::move(criterion)) {}

  GuideNeeds needs() const override { return {true, criterion_->needs()}; }
  Covered covered() const override { return criterion_->covered(); }

 private:
  void run_absorb(const Judged& seeds, std::vector<double>& gains) override { gains = criterion_->add(seeds.traces); }
  void run(const Judged& mutants, std::vector<Decision>& decisions) override {
    std::vector<double> gains = criterion_->add(mutants.traces);
    for (std::size_t i = 0; i < gains.size(); ++i) decisions[i] = {gains[i] > 0, gains[i], ""};
  }
  void run_reset() override { criterion_->reset(); }
  void run_merge(const Guide& other) override {
    criterion_->merge(*static_cast<const CriterionGuide&>(other).criterion_);
  }
  void run_save(ArchiveWriter& out) const override { criterion_->save(out); }
  void run_load(ArchiveReader& in) override { criterion_->load(in); }

  std::unique_ptr<Criterion> criterion_;
};

}  // namespace

std::unique_ptr<Guide> make_criterion_guide(const Spec& criterion, const GuideContext& context) {
  return std::make_unique<CriterionGuide>(make_criterion(criterion, {context.tracer.layout(), context.profile}));
}

GuideEntry criterion_guide_entry(const CriterionRegistry::Entry& criterion) {
  return {{criterion.name, "keeps what gains coverage: " + criterion.help, criterion.schema,
           [](const Options& options, const GuideContext& context) {
             return make_criterion_guide(Spec::parse(options.str()), context);
           }},
          {[](const Options& options) { return std::vector<Spec>{Spec::parse(options.str())}; }, nullptr}};
}

}  // namespace galvani
