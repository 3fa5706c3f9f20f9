// What tokenizers do to a text before they cut it.
#pragma once

#include <unicode/unistr.h>

#include <functional>
#include <string>
#include <vector>

namespace galvani {

using TextStep = std::function<void(icu::UnicodeString& text)>;

// Controls and what is no character go, white space becomes blanks.
void clean_text(icu::UnicodeString& text);
// Blanks around CJK ideographs, so that each is a word.
void space_ideographs(icu::UnicodeString& text);
// Of decomposed characters: marks go.
void strip_marks(icu::UnicodeString& text);
void to_lower(icu::UnicodeString& text);

struct BertNormalization {
  bool clean = true;
  bool ideographs = true;
  bool strip_accents = true;
  bool lower = true;
};
TextStep bert_normalizer(const BertNormalization& how);
// "nfc", "nfd", "nfkc" or "nfkd".
TextStep unicode_form(const std::string& form);
TextStep replace_text(const std::string& what, const std::string& by);
// Error(bad_input) naming `where` if the expression cannot be compiled.
TextStep replace_matches(const std::string& expression, const std::string& by, const std::string& where);
TextStep strip_white(bool left, bool right);

}  // namespace galvani
