#include "report/gallery.h"

#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "report/section.h"

namespace galvani {
namespace {

constexpr std::size_t kMostNotedFiles = 3;

Json gallery_notes(const Page& page, const Gallery& gallery) {
  Json all = Json::array();
  if (page.faults == 0) all.push_back("No fault was found.");
  if (page.shown < page.faults) {
    std::string which =
        gallery.shown_distinct < gallery.distinct
            ? fmt::format("{} of the {} distinct ones, one of every seed first and the others evenly",
                          format_count(gallery.shown_distinct), format_count(gallery.distinct))
            : fmt::format("all {} distinct ones and the first {} repetitions", format_count(gallery.distinct),
                          format_count(gallery.shown - gallery.shown_distinct));
    all.push_back(fmt::format("The gallery has {} of {} faults: {}. The figures, bars and the heat map count all.",
                              format_count(page.shown), format_count(page.faults), which));
  }
  if (!page.bad.empty()) {
    std::string text =
        counted(static_cast<std::int64_t>(page.bad.size()), "fault has", "faults have") + " no picture: ";
    for (std::size_t i = 0; i < std::min(kMostNotedFiles, page.bad.size()); ++i)
      text += (i > 0 ? "; " : "") + page_text(page.bad[i]);
    all.push_back(text + (page.bad.size() > kMostNotedFiles ? "; ..." : "."));
  }
  return all;
}

std::string sheet_elements(const char* kind, const std::vector<std::string>& sheets) {
  std::string result;
  for (std::size_t i = 0; i < sheets.size(); ++i)
    result += fmt::format("<script type=\"text/plain\" id=\"{}{}\" data-type=\"{}\">{}</script>\n", kind, i,
                          SheetMaker::type(), sheets[i]);
  return result;
}

class GallerySection : public Section {
 public:
  std::string name() const override { return "gallery"; }
  Places make(const PageSubject& subject, Json& data, Page& page) const override {
    Gallery gallery = make_gallery(subject.reader, subject.options, data);
    page.shown = gallery.shown;
    page.images = gallery.images;
    page.bad = gallery.bad;
    page.remarks = fmt::format("{}, {}", counted(page.shown, "fault"), counted(page.images, "different image"));
    if (gallery.reduced)
      page.remarks += fmt::format(", reduced to {} x {} pixels", gallery.tile.width, gallery.tile.height);
    data["notes"] = gallery_notes(page, gallery);
    return {{"TAIL", "<dialog id=\"detail\"></dialog>\n" + sheet_elements("s", gallery.seed_sheets) +
                         sheet_elements("m", gallery.fault_sheets)}};
  }
};

}  // namespace

std::unique_ptr<Section> make_gallery_section() {
  return std::make_unique<GallerySection>();
}

}  // namespace galvani
