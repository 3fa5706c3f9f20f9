#include "galvani/base/text.h"

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/base/utf8.h"

namespace galvani {
namespace {

// XML 1.0, production 2 (Char).
bool allowed_in_xml(const Character& c) {
  bool control = c.code < 0x20 && c.code != '\t' && c.code != '\n' && c.code != '\r';
  return c.valid && !control && c.code != 0xfffe && c.code != 0xffff;
}

bool starts_formula(char c) {
  return std::string_view("=+-@\t\r\n").find(c) != std::string_view::npos;
}

// Whether a reader takes the first character away.
bool is_guarded(std::string_view cell) {
  return cell.size() > 1 && cell[0] == '\'' && (cell[1] == '\'' || starts_formula(cell[1]));
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    Character c = first_character(text);
    std::string_view bytes = text.substr(0, c.length);
    text.remove_prefix(c.length);
    if (!allowed_in_xml(c)) {
      result += "\xef\xbf\xbd";
      continue;
    }
    switch (c.code) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += bytes;
    }
  }
  return result;
}

std::string csv_cell(std::string_view text) {
  bool guard = is_guarded(text) || (!text.empty() && starts_formula(text[0]));
  std::string apostrophe = guard ? "'" : "";
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return apostrophe + std::string(text);
  std::string quoted = "\"" + apostrophe;
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_name(std::string_view text) {
  return csv_cell(printable(text, kWholeText));
}

std::vector<std::string> split_csv_line(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  for (std::string& cell : cells) {
    if (is_guarded(cell)) cell.erase(0, 1);
  }
  return cells;
}

std::string shell_word(std::string_view text) {
  auto plain = [](char c) {
    bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return alphanumeric || std::string_view("_./:=,+-@%").find(c) != std::string_view::npos || (c & 0x80) != 0;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string trimmed(const std::string& text) {
  constexpr const char* kWhite = " \t\r";
  std::size_t first = text.find_first_not_of(kWhite);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(kWhite) - first + 1);
}

std::string counted(std::int64_t n, std::string_view one, std::string_view several) {
  std::string text = format_count(n) + " ";
  if (n == 1) return text.append(one);
  return several.empty() ? text.append(one) + "s" : text.append(several);
}

}  // namespace galvani
