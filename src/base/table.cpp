#include "galvani/base/table.h"

#include <algorithm>

#include "galvani/base/error.h"

namespace galvani {
namespace {

// Columns a UTF-8 text takes: its code points, which is right for what we print.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

Table::Table(const std::vector<std::string>& titles) {
  for (const std::string& title : titles) {
    bool right = !title.empty() && title[0] == '>';
    right_.push_back(right);
    titles_.push_back(printable(right ? title.substr(1) : title, kWholeText));
  }
}

void Table::add(std::vector<std::string> row) {
  if (row.size() != titles_.size())
    fail(ErrorCode::internal, "a table row has {} cells instead of {}", row.size(), titles_.size());
  // What is in a table may come from anywhere.
  for (std::string& cell : row) cell = printable(cell, kWholeText);
  rows_.push_back(std::move(row));
}

std::string Table::str() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < titles_.size(); ++c) {
    std::size_t width = width_of(titles_[c]);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
  }
  std::string text;
  auto line = [&](const std::vector<std::string>& cells) {
    std::string row;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      std::string pad(widths[c] - width_of(cells[c]), ' ');
      row += (c == 0 ? "" : "  ") + (right_[c] ? pad + cells[c] : cells[c] + pad);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  };
  if (std::any_of(titles_.begin(), titles_.end(), [](const std::string& title) { return !title.empty(); })) {
    line(titles_);
    std::vector<std::string> rule;
    for (std::size_t width : widths) {
      std::string dashes;
      for (std::size_t i = 0; i < width; ++i) dashes += "─";
      rule.push_back(dashes);
    }
    line(rule);
  }
  for (const auto& row : rows_) line(row);
  return text;
}

}  // namespace galvani
