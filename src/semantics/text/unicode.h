// Between UTF-8 and ICU's strings, and kinds of characters as tokenizers name them.
#pragma once

#include <unicode/unistr.h>

#include <string>
#include <string_view>
#include <vector>

namespace galvani {

icu::UnicodeString from_utf8(std::string_view text);
std::string to_utf8(const icu::UnicodeString& text);
std::vector<UChar32> characters_of(const icu::UnicodeString& text);

bool is_letter(UChar32 c);       // category L
bool is_number(UChar32 c);       // category N
bool is_white(UChar32 c);        // the property White_Space
bool is_punctuation(UChar32 c);  // category P, and ASCII's other signs, as BERT has it

}  // namespace galvani
