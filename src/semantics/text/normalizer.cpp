#include "semantics/text/normalizer.h"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <memory>

#include "galvani/base/error.h"
#include "semantics/text/expression.h"
#include "semantics/text/unicode.h"

namespace galvani {
namespace {

template <class Keep>
void rewrite(icu::UnicodeString& text, const Keep& keep) {
  icu::UnicodeString result;
  for (UChar32 c : characters_of(text)) keep(c, result);
  text = result;
}

bool is_ideograph(UChar32 c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

const icu::Normalizer2& normalizer_of(const std::string& form) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* found = form == "nfc"    ? icu::Normalizer2::getNFCInstance(error)
                                  : form == "nfd"  ? icu::Normalizer2::getNFDInstance(error)
                                  : form == "nfkc" ? icu::Normalizer2::getNFKCInstance(error)
                                                   : icu::Normalizer2::getNFKDInstance(error);
  if (U_FAILURE(error)) fail(ErrorCode::environment, "ICU has no data for Unicode's form {}", form);
  return *found;
}

}  // namespace

void clean_text(icu::UnicodeString& text) {
  rewrite(text, [](UChar32 c, icu::UnicodeString& result) {
    if (c == '\t' || c == '\n' || c == '\r' || is_white(c)) {
      result.append(UChar32{' '});
    } else if (c != 0xFFFD && (U_GET_GC_MASK(c) & U_GC_C_MASK) == 0) {
      result.append(c);
    }
  });
}

void space_ideographs(icu::UnicodeString& text) {
  rewrite(text, [](UChar32 c, icu::UnicodeString& result) {
    if (!is_ideograph(c)) {
      result.append(c);
      return;
    }
    result.append(UChar32{' '}).append(c).append(UChar32{' '});
  });
}

void strip_marks(icu::UnicodeString& text) {
  unicode_form("nfd")(text);
  rewrite(text, [](UChar32 c, icu::UnicodeString& result) {
    if (u_charType(c) != U_NON_SPACING_MARK) result.append(c);
  });
}

void to_lower(icu::UnicodeString& text) {
  // Letter by letter, as tokenizers do: a sigma at the end of a word is not special.
  rewrite(text, [](UChar32 c, icu::UnicodeString& result) {
    result.append(icu::UnicodeString(c).toLower(icu::Locale::getRoot()));
  });
}

TextStep bert_normalizer(const BertNormalization& how) {
  return [how](icu::UnicodeString& text) {
    if (how.clean) clean_text(text);
    if (how.ideographs) space_ideographs(text);
    if (how.strip_accents) strip_marks(text);
    if (how.lower) to_lower(text);
  };
}

TextStep unicode_form(const std::string& form) {
  const icu::Normalizer2& normalizer = normalizer_of(form);
  return [&normalizer](icu::UnicodeString& text) {
    UErrorCode error = U_ZERO_ERROR;
    icu::UnicodeString result = normalizer.normalize(text, error);
    if (U_SUCCESS(error)) text = result;
  };
}

TextStep replace_text(const std::string& what, const std::string& by) {
  return [from = from_utf8(what), to = from_utf8(by)](icu::UnicodeString& text) {
    if (!from.isEmpty()) text.findAndReplace(from, to);
  };
}

TextStep replace_matches(const std::string& expression, const std::string& by, const std::string& where) {
  auto compiled = std::make_shared<Expression>(expression, where);
  return [compiled, to = from_utf8(by)](icu::UnicodeString& text) {
    icu::UnicodeString result;
    std::int32_t done = 0;
    for (auto [start, end] : compiled->matches(text)) {
      result.append(text, done, start - done).append(to);
      done = end;
    }
    text = result.append(text, done, text.length() - done);
  };
}

TextStep strip_white(bool left, bool right) {
  return [left, right](icu::UnicodeString& text) {
    std::vector<UChar32> all = characters_of(text);
    std::size_t first = 0;
    std::size_t last = all.size();
    while (left && first < last && is_white(all[first])) ++first;
    while (right && last > first && is_white(all[last - 1])) --last;
    icu::UnicodeString result;
    for (std::size_t i = first; i < last; ++i) result.append(all[i]);
    text = result;
  };
}

}  // namespace galvani
