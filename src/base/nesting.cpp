#include "galvani/base/nesting.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::size_t kDeepest = 200;

// The end of the string that begins with the quote at `at`. TOML's may have three quotes, or apostrophes, between which
// nothing is escaped.
std::size_t skip_string(std::string_view text, std::size_t at) {
  char quote = text[at];
  std::string three(3, quote);
  bool long_one = text.substr(at, 3) == three;
  for (std::size_t i = at + (long_one ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (long_one ? text.substr(i, 3) == three : text[i] == quote) {
      if (!long_one) return i + 1;
      // Two more may belong to the text.
      std::size_t end = i + 3;
      while (end < std::min(i + 5, text.size()) && text[end] == quote) ++end;
      return end;
    } else if (text[i] == '\n' && !long_one) {
      return i;  // no string; the parser says so
    }
  }
  return text.size();
}

// Depth of TOML's keys, `a.b.c` being three tables, and of what is in brackets.
class TomlDepth {
 public:
  // False: too deep.
  bool read(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      char c = text[i];
      if (c == '"' || c == '\'') {
        i = skip_string(text, i);
      } else if (c == '#') {
        i = std::min(text.find('\n', i), text.size());
      } else {
        take(c);
        ++i;
      }
      if (header_ + open_ + dots_ > kDeepest) return false;
    }
    return true;
  }

 private:
  void take(char c) {
    if (c == '.') {
      ++dots_;
    } else if (c == '[' || c == '{') {
      if (brackets_.empty() && !in_value_) header_ = 0;  // a table of its own begins
      brackets_.push_back(dots_ + 1);
      open_ += dots_ + 1;
      dots_ = 0;
    } else if (c == ']' || c == '}') {
      if (brackets_.empty()) return;
      if (!in_value_) header_ = std::max(header_, open_ + dots_);
      open_ -= brackets_.back();
      brackets_.pop_back();
      dots_ = 0;
    } else if (c == '=') {
      in_value_ = true;
    } else if (c == ',') {
      dots_ = 0;
    } else if (c == '\n') {
      dots_ = 0;
      if (brackets_.empty()) in_value_ = false;
    }
  }

  std::size_t header_ = 0;             // of the table that is filled
  std::vector<std::size_t> brackets_;  // that are open, each with the dots of the key before it
  std::size_t open_ = 0;               // their sum
  std::size_t dots_ = 0;               // of the key at hand, or of a number
  bool in_value_ = false;
};

}  // namespace

void check_toml_nesting(std::string_view text, const std::string& what) {
  if (!TomlDepth().read(text)) bad_input("{}: nests deeper than the {} levels accepted", what, kDeepest);
}

bool json_nests_too_deep(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace galvani
