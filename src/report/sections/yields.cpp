#include "report/section.h"

namespace galvani {
namespace {

class YieldsSection : public Section {
 public:
  std::string name() const override { return "yields"; }
  Places make(const PageSubject& subject, Json& data, Page&) const override {
    data["byClass"] = page_yields(subject.reader.by_class());
    return {};
  }
};

}  // namespace

std::unique_ptr<Section> make_yields_section() {
  return std::make_unique<YieldsSection>();
}

}  // namespace galvani
