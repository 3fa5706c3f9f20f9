#include "report/section.h"

namespace galvani {
namespace {

// All of it follows from the data that every section may use.
class ConfusionSection : public Section {
 public:
  std::string name() const override { return "confusion"; }
  // A task by reference has two verdicts, and faults are all of one.
  bool applies(const PageSubject& subject) const override { return !subject.reader.record().by_reference(); }
  Places make(const PageSubject&, Json&, Page&) const override { return {}; }
};

}  // namespace

std::unique_ptr<Section> make_confusion_section() {
  return std::make_unique<ConfusionSection>();
}

}  // namespace galvani
