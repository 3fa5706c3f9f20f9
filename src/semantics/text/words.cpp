#include "semantics/text/words.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>

namespace galvani {

std::vector<std::string> words_of(std::string_view text) {
  icu::UnicodeString all =
      icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
  all.toLower(icu::Locale::getRoot());
  std::vector<std::string> words;
  icu::UnicodeString word;
  auto finish = [&] {
    if (word.isEmpty()) return;
    words.emplace_back();
    word.toUTF8String(words.back());
    word.remove();
  };
  for (std::int32_t i = 0; i < all.length(); i = all.moveIndex32(i, 1)) {
    UChar32 c = all.char32At(i);
    std::int32_t next = all.moveIndex32(i, 1);
    bool inside = !word.isEmpty() && next < all.length() && u_isalpha(all.char32At(next)) != 0;
    bool mark = (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0;  // an accent written as a character of its own
    if (u_isalnum(c) != 0 || (mark && !word.isEmpty())) {
      word.append(c);
    } else if ((c == U'\'' || c == U'\u2019') && inside) {
      word.append(UChar32{'\''});
    } else {
      finish();
    }
  }
  finish();
  return words;
}

bool is_function_word(std::string_view word) {
  static constexpr std::array<std::string_view, 32> kWords = {
      "a",    "an",  "and",   "are",   "as",    "at",   "be", "but", "by",    "for", "from",
      "has",  "in",  "into",  "is",    "it",    "its",  "of", "on",  "or",    "so",  "than",
      "that", "the", "their", "there", "these", "this", "to", "was", "which", "with"};
  return std::binary_search(kWords.begin(), kWords.end(), word);
}

}  // namespace galvani
