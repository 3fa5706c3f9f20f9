#include "table.h"

#include <algorithm>

namespace galvani::cli {
namespace {

// Columns a terminal uses for UTF-8 text: its bytes without the continuation bytes.
std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string format_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                         const std::vector<Align>& align) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < header.size(); ++c) {
    std::size_t width = display_width(header[c]);
    for (const auto& row : rows) width = std::max(width, display_width(row.at(c)));
    widths.push_back(width);
  }
  std::string result;
  auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      std::string space(widths[c] - display_width(row[c]), ' ');
      line += (c == 0 ? "" : "  ") + (align.at(c) == Align::right ? space + row[c] : row[c] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  };
  add(header);
  for (const auto& row : rows) add(row);
  return result;
}

}  // namespace galvani::cli
