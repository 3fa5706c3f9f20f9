// Pages of tables and pictures that need no script.
#pragma once

#include <string>
#include <vector>

namespace galvani {

// Text from a file as it may stand in a page.
std::string page_markup(const std::string& text);

// `html` goes in as it is. `kind`: "l" to the left, "b" bold.
std::string page_cell(const std::string& html, const char* kind = "");
std::string page_section(const std::string& title, const std::string& hint, const std::string& html);

struct PagePicture {
  std::string png;
  std::string text;  // below it
};
std::string page_pictures(const std::vector<PagePicture>& pictures);

// `verb` made it; `title` and `subtitle` are texts, `body` is HTML.
std::string plain_page(const std::string& verb, const std::string& title, const std::string& subtitle,
                       const std::string& body);

}  // namespace galvani
