#include "galvani/base/table.h"

#include <unistd.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/terminal.h"

namespace galvani {
namespace {

// Columns a UTF-8 text takes: its code points, which is right for what we print.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// The first columns of a text, and how many bytes they are.
std::size_t bytes_of_columns(const std::string& text, std::size_t columns) {
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    bool starts = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts && columns-- == 0) break;
  }
  return i;
}

std::string shortened(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  return text.substr(0, bytes_of_columns(text, width - 1)) + "…";
}

// The words of a cell in lines of at most `width` columns. What it is indented by stays.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return {text};
  std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
  std::vector<std::string> lines = {text.substr(0, indent)};
  bool empty = true;
  for (std::size_t at = indent; at < text.size();) {
    std::size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    if (!empty && width_of(lines.back()) + 1 + width_of(word) > width) {
      lines.emplace_back();
      empty = true;
    }
    lines.back() += (empty ? "" : " ") + word;
    empty = false;
    at = std::min(text.find_first_not_of(' ', end), text.size());
  }
  for (std::string& line : lines) line = shortened(line, width);
  return lines;
}

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowColumn = 8;  // text columns do not give way beyond it
constexpr std::size_t kNarrowNumber = 3;  // of titles above numbers, which are never cut themselves

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

std::vector<std::size_t> Table::fitted_widths(int width) const {
  std::vector<std::size_t> widths;
  std::vector<std::size_t> least;
  std::size_t total = 0;
  for (std::size_t c = 0; c < titles_.size(); ++c) {
    std::size_t cells = 0;
    for (const auto& row : rows_) cells = std::max(cells, width_of(row[c]));
    widths.push_back(std::max(cells, width_of(titles_[c])));
    least.push_back(std::min(widths[c], right_[c] ? std::max(cells, kNarrowNumber) : kNarrowColumn));
    total += widths[c] + (c == 0 ? 0 : kGap);
  }
  if (width <= 0) return widths;
  for (; total > static_cast<std::size_t>(width); --total) {
    std::size_t widest = titles_.size();
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] > least[c] && (widest == titles_.size() || widths[c] > widths[widest])) widest = c;
    }
    if (widest == titles_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::str() const {
  return str(terminal_width(STDOUT_FILENO));
}

std::string Table::str(int width) const {
  std::vector<std::size_t> widths = fitted_widths(width);
  std::string text;
  auto line = [&](const std::vector<std::string>& cells) {
    std::vector<std::vector<std::string>> lines;
    std::size_t height = 1;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      lines.push_back(right_[c] ? std::vector{shortened(cells[c], widths[c])} : wrapped(cells[c], widths[c]));
      height = std::max(height, lines[c].size());
    }
    for (std::size_t i = 0; i < height; ++i) {
      std::string row;
      for (std::size_t c = 0; c < cells.size(); ++c) {
        std::string cell = i < lines[c].size() ? lines[c][i] : "";
        std::string pad(widths[c] - width_of(cell), ' ');
        row += std::string(c == 0 ? 0 : kGap, ' ') + (right_[c] ? pad + cell : cell + pad);
      }
      row.erase(row.find_last_not_of(' ') + 1);
      text += row + "\n";
    }
  };
  if (std::any_of(titles_.begin(), titles_.end(), [](const std::string& title) { return !title.empty(); })) {
    line(titles_);
    std::vector<std::string> rule;
    for (std::size_t columns : widths) {
      std::string dashes;
      for (std::size_t i = 0; i < columns; ++i) dashes += "─";
      rule.push_back(dashes);
    }
    line(rule);
  }
  for (const auto& row : rows_) line(row);
  return text;
}

}  // namespace galvani
