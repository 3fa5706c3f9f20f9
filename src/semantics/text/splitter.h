// How tokenizers cut a text into words before they look for pieces of words.
#pragma once

#include <unicode/unistr.h>

#include <functional>
#include <string>
#include <vector>

namespace galvani {

// Replaces the pieces by smaller ones.
using Splitter = std::function<void(std::vector<icu::UnicodeString>& pieces)>;

// At white space, which goes, and around every punctuation mark, which stays.
Splitter bert_splitter();
// Words of letters, digits and underscores, and runs of other signs.
Splitter word_splitter();
Splitter white_splitter();
Splitter punctuation_splitter();
// Runs of digits, or every one.
Splitter digit_splitter(bool each);
// GPT-2's: English endings ('s, 'll), runs of letters, of digits or of other signs with a blank before them, white
// space.
Splitter gpt2_splitter();
// CLIP's: endings, runs of letters, single digits, runs of other signs; white space goes.
Splitter clip_splitter();

enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
// At the matches of an expression, or at what lies between them (`inverted`). Error(bad_input) naming `where` if the
// expression cannot be compiled.
Splitter expression_splitter(const std::string& expression, SplitBehavior behavior, bool inverted,
                             const std::string& where);

// Pieces that do not begin with a blank get one.
Splitter add_prefix_space();
// Every piece as the characters that stand for its bytes in GPT-2's vocabulary ("Ġ" is a blank).
Splitter byte_letters();

// For expressions that stand for a plain text.
std::string escape_expression(const std::string& text);

}  // namespace galvani
