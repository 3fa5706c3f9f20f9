#include "galvani/report/selection_page.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "galvani/base/text.h"
#include "galvani/data/image.h"
#include "galvani/data/picture.h"
#include "report/section.h"
#include "report/sprites.h"

namespace galvani {
namespace {

constexpr const char* kPickStyle =
    "ol{list-style:none;display:flex;flex-wrap:wrap;gap:12px;padding:0}"
    "ol li{width:150px;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:8px;"
    "font-size:12px;overflow-wrap:anywhere}ol li.done{border-color:var(--accent)}"
    "ol li img{width:132px;height:132px;object-fit:contain;image-rendering:pixelated;background:#888;display:block}"
    "ol li audio{width:132px;height:30px;margin-top:4px}"
    "ol li b{display:block;margin-top:4px}ol li span{display:block;color:var(--soft)}"
    "ol li input{width:132px;margin-top:4px;font:inherit;color:inherit;background:var(--paper);border:1px solid "
    "var(--line);border-radius:5px;padding:3px 5px}"
    "#save{position:sticky;top:8px;z-index:1}";

std::string markup(const std::string& text) {
  return escape_markup(page_text(text));
}

std::string card(const SelectionPage& page, const PickCard& pick) {
  std::string html =
      fmt::format(R"(<li data-before="{}" data-after="{}">)", escape_markup(pick.before), escape_markup(pick.after));
  if (pick.image.defined())
    html += fmt::format(R"(<img alt="" loading="lazy" src="data:image/png;base64,{}">)",
                        base64(encode_png(picture_of(pick.image, page.type))));
  if (pick.image.defined() && page.type.kind == SampleKind::audio)
    html += fmt::format(R"(<audio controls preload="none" src="data:audio/wav;base64,{}"></audio>)",
                        base64(page.type.encode(pick.image)));
  html += fmt::format("<b>{}</b>", markup(pick.title));
  for (const std::string& line : pick.lines) html += fmt::format("<span>{}</span>", markup(line));
  return html + fmt::format("<input list=\"classes\" placeholder=\"label\" aria-label=\"label of {}\"></li>\n",
                            markup(pick.title));
}

}  // namespace

std::string selection_page(const SelectionPage& page) {
  std::string body;
  for (const std::string& note : page.notes) body += fmt::format("<p class=\"note\">{}</p>\n", markup(note));
  body += "<datalist id=\"classes\">";
  for (const std::string& name : page.classes) body += fmt::format("<option value=\"{}\">", markup(name));
  body += fmt::format(
      "</datalist>\n<p><button id=\"save\" data-header=\"{}\" data-table=\"{}\">Save the table with labels "
      "(<span id=\"count\">0</span> of {})</button></p>\n<ol>\n",
      escape_markup(page.header), escape_markup(page.table), page.picks.size());
  for (const PickCard& pick : page.picks) body += card(page, pick);
  body += "</ol>\n";
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; media-src data:; "
      "style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>{0} - galvani select</title>\n<style>\n{1}{2}\n</style>\n"
      "</head>\n<body>\n<header><div class=\"wide\"><p class=\"brand\">galvani <span>select</span></p>\n<h1>{0}</h1>\n"
      "<p id=\"subtitle\">{3}</p></div></header>\n<main class=\"wide\">\n{4}</main>\n<script>\n{5}</script>\n</body>\n"
      "</html>\n",
      markup(page.title), page_part("page.css"), kPickStyle, markup(page.subtitle), body, page_part("selection.js"));
}

}  // namespace galvani
