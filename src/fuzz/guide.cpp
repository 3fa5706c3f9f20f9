#include "galvani/fuzz/guide.h"

#include "galvani/base/error.h"

namespace galvani {

std::vector<double> Guide::absorb(const Judged& seeds) {
  std::vector<double> gains(static_cast<std::size_t>(seeds.size()), 0.0);
  if (!gains.empty()) run_absorb(seeds, gains);
  return gains;
}

std::vector<Decision> Guide::decide(const Judged& mutants) {
  std::vector<Decision> decisions(static_cast<std::size_t>(mutants.size()));
  if (!decisions.empty()) run(mutants, decisions);
  return decisions;
}

bool Guide::full() const {
  Covered amount = covered();
  return amount.total > 0 && amount.covered >= amount.total;
}

void Guide::save(ArchiveWriter& out) const {
  out.put(spec_);
  run_save(out);
}

void Guide::load(ArchiveReader& in) {
  if (in.get_text() != spec_) in.broken("belongs to another guide");
  run_load(in);
}

class GuideMaker {
 public:
  static std::unique_ptr<Guide> make(const Spec& spec, const GuideContext& context) {
    Options options = guides().options(spec);
    std::unique_ptr<Guide> guide = guides().create(spec, context);
    guide->id_ = spec.name;
    guide->spec_ = options.str();
    return guide;
  }
};

std::unique_ptr<Guide> make_guide(const Spec& spec, const GuideContext& context) {
  return GuideMaker::make(spec, context);
}

std::vector<Spec> guide_criteria(const Spec& guide) {
  if (guide.name == "deephunter") return {Spec::parse(guides().options(guide).text("criterion"))};
  if (criteria().find(guide.name) != nullptr) return {guide};
  return {};
}

GuideDefaults guide_defaults(const Spec& guide) {
  GuideDefaults defaults;
  if (guide.name == "deephunter") defaults.mutators = "deephunter:group=" + guides().options(guide).text("group");
  return defaults;
}

}  // namespace galvani
