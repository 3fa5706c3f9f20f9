// Text tables for terminals.
#pragma once

#include <string>
#include <vector>

namespace galvani {

class Table {
 public:
  // A title that starts with '>' makes its column align right (the '>' is not shown). If all are empty, rows alone are
  // printed.
  explicit Table(const std::vector<std::string>& titles);
  void add(std::vector<std::string> row);
  // As wide as it needs to be, or as the terminal behind standard output is: then the widest columns give way, cells of
  // several words continue below, and a single word that is too long ends in an ellipsis.
  std::string str() const;
  std::string str(int width) const;  // 0: as wide as it needs to be

 private:
  std::vector<std::size_t> fitted_widths(int width) const;

  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace galvani
