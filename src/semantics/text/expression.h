// Regular expressions that come with a tokenizer's file: they must not run for ever.
#pragma once

#include <unicode/unistr.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace galvani {

class Expression {
 public:
  // Error(bad_input) naming `where` if it cannot be compiled.
  Expression(const std::string& expression, std::string where);
  ~Expression();

  // Start and end of every match that is not empty, in order. May be called by several threads. Error(bad_input) if it
  // takes far too long.
  std::vector<std::pair<std::int32_t, std::int32_t>> matches(const icu::UnicodeString& text) const;

 private:
  struct Impl;
  std::string where_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace galvani
