// Conditions on the figures that a piece of work ends with, such as "faults>0": what continuous integration asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace galvani {

// Numbers by name, in the order they are listed to users.
using Figures = std::vector<std::pair<std::string, double>>;
std::vector<std::string> names_of(const Figures& figures);

class Gate {
 public:
  explicit Gate(const std::string& text);  // usage error unless it is a condition
  // Usage error that lists `names` unless the condition is on one of them.
  void check(const std::vector<std::string>& names) const;

  const std::string& text() const { return text_; }
  // A bound in percent, "broken-seeds>5%", is on the figure's share, "broken-seeds%", where there is one.
  // Of the figure it is on. REQUIRES that it is among them.
  double value(const Figures& figures) const;
  std::string value_text(const Figures& figures) const;  // "91.2%" where the bound is in percent
  // No condition but != holds for a figure that is not a number.
  bool met(const Figures& figures) const;

 private:
  std::string text_;
  std::string figure_;
  std::string comparison_;
  double bound_ = 0;
  bool percent_ = false;
};

// All of them, checked.
std::vector<Gate> parse_gates(const std::vector<std::string>& texts, const std::vector<std::string>& names);

}  // namespace galvani
