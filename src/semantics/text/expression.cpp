#include "semantics/text/expression.h"

#include <unicode/regex.h>

#include "galvani/base/error.h"
#include "semantics/text/unicode.h"

namespace galvani {
namespace {

// ICU counts steps of its matcher in units of about a thousandth of a second.
constexpr std::int32_t kMostSteps = 2000;

}  // namespace

struct Expression::Impl {
  std::unique_ptr<icu::RegexPattern> pattern;
};

Expression::Expression(const std::string& expression, std::string where)
    : where_(std::move(where)), impl_(std::make_unique<Impl>()) {
  UErrorCode error = U_ZERO_ERROR;
  UParseError place{};
  impl_->pattern.reset(icu::RegexPattern::compile(from_utf8(expression), 0, place, error));
  if (U_FAILURE(error)) bad_input("{}: the expression '{}' is not understood", where_, printable(expression));
}

Expression::~Expression() = default;

std::vector<std::pair<std::int32_t, std::int32_t>> Expression::matches(const icu::UnicodeString& text) const {
  std::vector<std::pair<std::int32_t, std::int32_t>> result;
  UErrorCode error = U_ZERO_ERROR;
  std::unique_ptr<icu::RegexMatcher> matcher(impl_->pattern->matcher(text, error));
  if (U_SUCCESS(error)) matcher->setTimeLimit(kMostSteps, error);
  while (U_SUCCESS(error) && matcher->find(error) && U_SUCCESS(error)) {
    std::int32_t start = matcher->start(error);
    std::int32_t end = matcher->end(error);
    if (end > start) result.emplace_back(start, end);
  }
  if (U_FAILURE(error)) bad_input("{}: one of its expressions takes too long for a text", where_);
  return result;
}

}  // namespace galvani
