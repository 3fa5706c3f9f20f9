#include "galvani/base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include "galvani/base/error.h"

namespace galvani {
namespace {

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

void check_bounds(const std::string& owner, const OptionInfo& info, double number) {
  if (!std::isfinite(number) || (info.low && number < *info.low) || (info.high && number > *info.high)) {
    std::string range = info.low && info.high ? fmt::format("from {} to {}", *info.low, *info.high)
                        : info.low            ? fmt::format("at least {}", *info.low)
                        : info.high           ? fmt::format("at most {}", *info.high)
                                              : std::string("a finite number");
    bad_usage("{}: option '{}' is {}, but must be {}", owner, info.name, number, range);
  }
}

bool parse_bool(const std::string& owner, const OptionInfo& info, std::string_view text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  bad_usage("{}: option '{}' is '{}', but must be true or false", owner, info.name, printable(text));
}

}  // namespace

std::string to_string(const OptionValue& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const double* d = std::get_if<double>(&value)) return fmt::format("{}", *d);
  return std::get<std::string>(value);
}

OptionValue parse_option(const std::string& owner, const OptionInfo& info, std::string_view text) {
  if (std::holds_alternative<bool>(info.fallback)) return parse_bool(owner, info, text);
  if (std::holds_alternative<std::int64_t>(info.fallback)) {
    std::int64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      bad_usage("{}: option '{}' is '{}', but must be a whole number", owner, info.name, printable(text));
    check_bounds(owner, info, static_cast<double>(number));
    return number;
  }
  if (std::holds_alternative<double>(info.fallback)) {
    std::string copy(text);
    char* end = nullptr;
    double number = std::strtod(copy.c_str(), &end);
    // "8/255": how people write what is a whole number of gray levels.
    if (*end == '/' && end != copy.c_str()) {
      const char* below = end + 1;
      number /= std::strtod(below, &end);
      if (end == below) end = copy.data();
    }
    if (copy.empty() || end != copy.c_str() + copy.size())
      bad_usage("{}: option '{}' is '{}', but must be a number", owner, info.name, printable(text));
    check_bounds(owner, info, number);
    return number;
  }
  std::string word(text);
  if (word.empty() && !std::get<std::string>(info.fallback).empty())
    bad_usage("{}: option '{}' is empty", owner, info.name);
  if (!info.choices.empty() && std::find(info.choices.begin(), info.choices.end(), word) == info.choices.end())
    bad_usage("{}: option '{}' is '{}', but must be one of {}", owner, info.name, printable(word), join(info.choices));
  return word;
}

namespace {

// Where the text up to the next comma ends that is not inside parentheses; npos: at its end.
std::size_t part_end(std::string_view text, std::string_view whole) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth < 0) bad_usage("'{}' closes a parenthesis that is not open", printable(whole));
    if (depth == 0 && text[i] == ',') return i;
  }
  if (depth > 0) bad_usage("'{}' does not close a parenthesis", printable(whole));
  return std::string_view::npos;
}

// A value that is all in parentheses is what is inside of them.
std::string unwrapped(std::string_view value) {
  if (value.size() < 2 || value.front() != '(' || value.back() != ')') return std::string(value);
  int depth = 0;
  for (std::size_t i = 0; i + 1 < value.size(); ++i) {
    depth += value[i] == '(' ? 1 : value[i] == ')' ? -1 : 0;
    if (depth == 0) return std::string(value);
  }
  return std::string(value.substr(1, value.size() - 2));
}

}  // namespace

Spec Spec::parse(std::string_view text) {
  std::vector<Spec> list = parse_list(text);
  if (list.size() != 1) bad_usage("'{}' names {} things where one is wanted", printable(text), list.size());
  return list.front();
}

std::vector<Spec> Spec::parse_list(std::string_view text) {
  if (text.empty()) bad_usage("a name is missing: the text is empty");
  const std::string_view whole = text;
  std::vector<Spec> result;
  while (true) {
    std::size_t comma = part_end(text, whole);
    std::string_view part = text.substr(0, comma);
    std::size_t equals = part.find('=');
    std::size_t colon = part.find(':');
    bool setting_only = equals != std::string_view::npos && (colon == std::string_view::npos || colon > equals);
    if (setting_only && result.empty())
      bad_usage("'{}' sets an option of nothing; write name:key=value", printable(part));
    if (!setting_only) {
      Spec spec;
      spec.name = std::string(part.substr(0, colon));
      if (spec.name.empty()) bad_usage("a name is missing in '{}'", printable(whole));
      result.push_back(std::move(spec));
      part = colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
      equals = part.find('=');
      if (colon != std::string_view::npos && equals == std::string_view::npos)
        bad_usage("'{}' is not of the form name:key=value", printable(whole));
    }
    if (!part.empty()) {
      std::string key(part.substr(0, equals));
      for (const auto& [known, unused] : result.back().settings) {
        if (known == key) bad_usage("option '{}' of '{}' is given twice", printable(key), result.back().name);
      }
      result.back().settings.emplace_back(std::move(key), unwrapped(part.substr(equals + 1)));
    }
    if (comma == std::string_view::npos) return result;
    text.remove_prefix(comma + 1);
  }
}

std::string Spec::str() const {
  std::string result = name;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const auto& [key, value] = settings[i];
    bool wrap = value.find(',') != std::string::npos || unwrapped(value) != value;
    result += (i == 0 ? ":" : ",") + key + "=" + (wrap ? "(" + value + ")" : value);
  }
  return result;
}

Options::Options(std::string owner, const OptionSchema& schema, const Spec& spec) : owner_(std::move(owner)) {
  for (const OptionInfo& info : schema) {
    order_.push_back(info.name);
    values_[info.name] = info.fallback;
  }
  for (const auto& setting : spec.settings) {
    const std::string& key = setting.first;
    auto info = std::find_if(schema.begin(), schema.end(), [&](const OptionInfo& i) { return i.name == key; });
    if (info == schema.end()) {
      if (schema.empty()) bad_usage("{}: takes no options, but '{}' was given", owner_, printable(key));
      std::string near = nearest_word(key, order_);
      bad_usage("{}: has no option '{}'; {}", owner_, printable(key),
                near.empty() ? "it has " + join(order_) : "did you mean '" + near + "'?");
    }
    values_[key] = parse_option(owner_, *info, setting.second);
  }
}

const OptionValue& Options::value(std::string_view name) const {
  auto it = values_.find(name);
  if (it == values_.end()) fail(ErrorCode::internal, "{} never declared the option '{}'", owner_, name);
  return it->second;
}

bool Options::flag(std::string_view name) const {
  return std::get<bool>(value(name));
}
std::int64_t Options::integer(std::string_view name) const {
  return std::get<std::int64_t>(value(name));
}
double Options::real(std::string_view name) const {
  return std::get<double>(value(name));
}
const std::string& Options::text(std::string_view name) const {
  return std::get<std::string>(value(name));
}

std::string Options::str() const {
  Spec spec{owner_, {}};
  for (const std::string& name : order_) spec.settings.emplace_back(name, to_string(values_.at(name)));
  return spec.str();
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > 200 || word.size() > 200) continue;
    std::vector<std::size_t> row(candidate.size() + 1);  // Levenshtein distance, one row at a time
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        std::size_t substitute = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace galvani
