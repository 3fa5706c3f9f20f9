// What a campaign's page is made of. To add a section: a class in sections/, a line in page_sections(), and what it
// looks like in page/<name>.html and page/<name>.js.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "galvani/base/json.h"
#include "galvani/fuzz/summary.h"
#include "galvani/report/page.h"

namespace galvani {

// What a page is about.
struct PageSubject {
  const CampaignReader& reader;
  const CampaignSummary& summary;
  const PageOptions& options;
};

class Section {
 public:
  virtual ~Section() = default;
  virtual std::string name() const = 0;  // of its files: "gallery"
  // Nothing of it is in the page otherwise.
  virtual bool applies(const PageSubject& subject) const { return true; }

  // Adds to `data` what its script needs, to `page` what it knows of it, and returns what goes into the places of its
  // HTML: %PLOTS% by "PLOTS". "TAIL" is for elements that are not shown, at the end of the page.
  using Places = std::map<std::string, std::string, std::less<>>;
  virtual Places make(const PageSubject& subject, Json& data, Page& page) const = 0;
};

// In the order of the page. Its data hold for all of them: classes, classCount, notANumber, confusion, mutators.
std::vector<std::unique_ptr<Section>> page_sections();

std::unique_ptr<Section> make_summary_section();
std::unique_ptr<Section> make_growth_section();
std::unique_ptr<Section> make_confusion_section();
std::unique_ptr<Section> make_yields_section();
std::unique_ptr<Section> make_robustness_section();
std::unique_ptr<Section> make_quality_section();
std::unique_ptr<Section> make_reasons_section();
std::unique_ptr<Section> make_gallery_section();

// A file of page/, embedded by CMake; empty if there is none of that name.
std::string_view page_part(std::string_view name);

// Text from a file, as long as a page shows it.
std::string page_text(const std::string& text);
// For bars: what came of the mutants of each mutator or class.
Json page_yields(const std::vector<YieldRecord>& rows);

}  // namespace galvani
