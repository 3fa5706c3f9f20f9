#include "semantics/text/unicode.h"

#include <unicode/uchar.h>

namespace galvani {

icu::UnicodeString from_utf8(std::string_view text) {
  return icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
}

std::string to_utf8(const icu::UnicodeString& text) {
  std::string result;
  text.toUTF8String(result);
  return result;
}

std::vector<UChar32> characters_of(const icu::UnicodeString& text) {
  std::vector<UChar32> result;
  for (std::int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) result.push_back(text.char32At(i));
  return result;
}

bool is_letter(UChar32 c) {
  return (U_GET_GC_MASK(c) & U_GC_L_MASK) != 0;
}

bool is_number(UChar32 c) {
  return (U_GET_GC_MASK(c) & U_GC_N_MASK) != 0;
}

bool is_white(UChar32 c) {
  return u_isUWhiteSpace(c) != 0;
}

bool is_punctuation(UChar32 c) {
  bool sign =
      c < 128 && c > 32 && c != 127 && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z');
  return sign || (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0;
}

}  // namespace galvani
