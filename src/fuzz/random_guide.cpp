// No guidance: every valid mutant is kept, or none, and nothing is measured.
#include "fuzz/builtin.h"

namespace galvani {
namespace {

class RandomGuide : public Guide {
 public:
  explicit RandomGuide(bool keeps) : keeps_(keeps) {}
  GuideNeeds needs() const override { return {}; }
  Covered covered() const override { return {}; }
  bool full() const override { return false; }

 private:
  void run_absorb(const Judged&, std::vector<double>&) override {}
  void run(const Judged&, std::vector<Decision>& decisions) override {
    for (Decision& decision : decisions) decision.keep = keeps_;
  }
  void run_reset() override {}
  void run_merge(const Guide&) override {}
  void run_save(ArchiveWriter&) const override {}
  void run_load(ArchiveReader&) override {}

  bool keeps_;
};

GuideEntry unguided(const char* name, const char* help, bool keeps) {
  return {{name,
           help,
           {},
           [keeps](const Options&, const GuideContext&) -> std::unique_ptr<Guide> {
             return std::make_unique<RandomGuide>(keeps);
           }},
          {}};
}

}  // namespace

GuideEntry random_guide_entry() {
  return unguided("random", "keeps every valid mutant", true);
}

GuideEntry none_guide_entry() {
  return unguided("none", "keeps nothing: only seeds are picked, faults are all that matters", false);
}

}  // namespace galvani
