#include "report/plain_page.h"

#include <fmt/format.h>

#include "galvani/base/text.h"
#include "report/section.h"
#include "report/sprites.h"

namespace galvani {
namespace {

constexpr const char* kStyle =
    "table{border-collapse:collapse;background:var(--card);font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 12px;border-bottom:1px solid var(--line);text-align:right}"
    "th:first-child,td:first-child,th.l,td.l{text-align:left}td.b{font-weight:700}"
    "ul{list-style:none;display:flex;flex-wrap:wrap;gap:10px;padding:0}li{width:112px;font-size:12px;overflow-wrap:"
    "anywhere}"
    "li img{width:112px;height:112px;object-fit:contain;image-rendering:pixelated;background:#888;display:block}";

}  // namespace

std::string page_markup(const std::string& text) {
  return escape_markup(page_text(text));
}

std::string page_cell(const std::string& html, const char* kind) {
  return fmt::format("<td class=\"{}\">{}</td>", kind, html);
}

std::string page_section(const std::string& title, const std::string& hint, const std::string& html) {
  return fmt::format("<section><h2>{}</h2><p class=\"hint\">{}</p>\n{}</section>\n", title, hint, html);
}

std::string page_pictures(const std::vector<PagePicture>& pictures) {
  std::string html = "<ul>\n";
  for (const PagePicture& picture : pictures)
    html += fmt::format("<li><img alt=\"\" src=\"data:image/png;base64,{}\">{}</li>\n", base64(picture.png),
                        page_markup(picture.text));
  return html + "</ul>\n";
}

std::string plain_page(const std::string& verb, const std::string& title, const std::string& subtitle,
                       const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'\">\n<title>{0} - galvani {1}</title>\n<style>\n{2}{3}\n</style>\n</head>\n<body>\n<header><div "
      "class=\"wide\"><p class=\"brand\">galvani <span>{1}</span></p>\n<h1>{0}</h1>\n<p id=\"subtitle\">{4}</p></div>"
      "</header>\n<main class=\"wide\">\n{5}</main>\n</body>\n</html>\n",
      page_markup(title), verb, page_part("page.css"), kStyle, page_markup(subtitle), body);
}

}  // namespace galvani
