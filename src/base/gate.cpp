#include "galvani/base/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "galvani/base/text.h"

namespace galvani {

std::vector<std::string> names_of(const Figures& figures) {
  std::vector<std::string> names;
  for (const auto& figure : figures) names.push_back(figure.first);
  return names;
}

Gate::Gate(const std::string& text) : text_(text) {
  static const std::string signs = "<>=!";
  static const std::vector<std::string> comparisons = {">", ">=", "<", "<=", "==", "!="};
  // The last comparison counts: a figure's name may be a spec with options, such as kmnc:k=1000.
  std::size_t last = text.find_last_of(signs);
  std::size_t before = last == std::string::npos ? last : text.find_last_not_of(signs, last);
  if (before != std::string::npos) {
    figure_ = trimmed(text.substr(0, before + 1));
    comparison_ = text.substr(before + 1, last - before);
    std::string number = trimmed(text.substr(last + 1));
    percent_ = !number.empty() && number.back() == '%';
    if (percent_) number.pop_back();
    const char* end = number.data() + number.size();
    auto [stop, error] = std::from_chars(number.data(), end, bound_);
    if (error != std::errc() || stop != end || !std::isfinite(bound_)) comparison_.clear();
    if (percent_) bound_ /= 100;
  }
  if (figure_.empty() || std::find(comparisons.begin(), comparisons.end(), comparison_) == comparisons.end())
    bad_usage("'{}' is not a condition; write a number's name, >, >=, <, <=, == or !=, and a bound: \"faults>0\"",
              printable(text));
}

void Gate::check(const std::vector<std::string>& names) const {
  if (std::find(names.begin(), names.end(), figure_) != names.end()) return;
  std::vector<std::string> known;
  for (const std::string& name : names) {
    // The share that goes with a number of the same name.
    bool second_form =
        name.back() == '%' && std::find(names.begin(), names.end(), name.substr(0, name.size() - 1)) != names.end();
    if (!second_form) known.push_back(name);
  }
  std::string near = nearest_word(figure_, known);
  bad_usage("there is no figure called '{}' here{}; known are {}", printable(figure_),
            near.empty() ? "" : " (did you mean '" + near + "'?)", fmt::join(known, ", "));
}

double Gate::value(const Figures& figures) const {
  for (const std::string& wanted : {figure_ + (percent_ ? "%" : ""), figure_}) {
    for (const auto& [name, value] : figures) {
      if (name == wanted) return value;
    }
  }
  fail(ErrorCode::internal, "there is no figure called '{}'", printable(figure_));
}

std::string Gate::value_text(const Figures& figures) const {
  return percent_ ? fmt::format("{:.4g}%", value(figures) * 100) : fmt::format("{:.6g}", value(figures));
}

bool Gate::met(const Figures& figures) const {
  double found = value(figures);
  if (comparison_ == ">") return found > bound_;
  if (comparison_ == ">=") return found >= bound_;
  if (comparison_ == "<") return found < bound_;
  if (comparison_ == "<=") return found <= bound_;
  return (found == bound_) == (comparison_ == "==");
}

std::vector<Gate> parse_gates(const std::vector<std::string>& texts, const std::vector<std::string>& names) {
  std::vector<Gate> gates;
  for (const std::string& text : texts) gates.emplace_back(text).check(names);
  return gates;
}

}  // namespace galvani
