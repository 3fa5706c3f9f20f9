// No guidance: every valid mutant is kept, and nothing is measured.
#include "fuzz/builtin.h"

namespace galvani {
namespace {

class RandomGuide : public Guide {
 public:
  GuideNeeds needs() const override { return {}; }
  Covered covered() const override { return {}; }
  bool full() const override { return false; }

 private:
  void run_absorb(const Judged&, std::vector<double>&) override {}
  void run(const Judged&, std::vector<Decision>& decisions) override {
    for (Decision& decision : decisions) decision.keep = true;
  }
  void run_reset() override {}
  void run_merge(const Guide&) override {}
  void run_save(ArchiveWriter&) const override {}
  void run_load(ArchiveReader&) override {}
};

}  // namespace

GuideEntry random_guide_entry() {
  return {
      {"random",
       "keeps every valid mutant",
       {},
       [](const Options&, const GuideContext&) -> std::unique_ptr<Guide> { return std::make_unique<RandomGuide>(); }},
      {}};
}

}  // namespace galvani
