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
  std::string str() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace galvani
