#include "report/section.h"

namespace galvani {
namespace {

// All of it follows from the data that every section may use.
class ConfusionSection : public Section {
 public:
  std::string name() const override { return "confusion"; }
  Places make(const PageSubject&, Json&, Page&) const override { return {}; }
};

}  // namespace

std::unique_ptr<Section> make_confusion_section() {
  return std::make_unique<ConfusionSection>();
}

}  // namespace galvani
