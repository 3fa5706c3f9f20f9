#include "semantics/text/splitter.h"

#include <unicode/uchar.h>

#include <array>
#include <memory>

#include "semantics/text/expression.h"
#include "semantics/text/unicode.h"

namespace galvani {
namespace {

using Pieces = std::vector<icu::UnicodeString>;
using Characters = std::vector<UChar32>;

icu::UnicodeString joined(const Characters& all, std::size_t first, std::size_t last) {
  icu::UnicodeString result;
  for (std::size_t i = first; i < last; ++i) result.append(all[i]);
  return result;
}

// A splitter of each piece by itself; `cut` gives the end of the piece that begins at `i` and says whether it stays.
template <class Cut>
Splitter by_characters(const Cut& cut) {
  return [cut](Pieces& pieces) {
    Pieces result;
    for (const icu::UnicodeString& piece : pieces) {
      Characters all = characters_of(piece);
      for (std::size_t i = 0; i < all.size();) {
        bool stays = true;
        std::size_t end = cut(all, i, stays);
        if (stays) result.push_back(joined(all, i, end));
        i = end;
      }
    }
    pieces = std::move(result);
  };
}

template <class Is>
std::size_t run_of(const Characters& all, std::size_t i, const Is& is) {
  while (i < all.size() && is(all[i])) ++i;
  return i;
}

bool is_other(UChar32 c) {
  return !is_white(c) && !is_letter(c) && !is_number(c);
}

// The end of 's, 't, 'm, 'd, 're, 've or 'll at i; i: there is none.
std::size_t english_ending(const Characters& all, std::size_t i) {
  if (all[i] != '\'' || i + 1 >= all.size()) return i;
  UChar32 first = all[i + 1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
  UChar32 second = i + 2 < all.size() ? all[i + 2] : 0;
  bool pair = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return pair ? i + 3 : i;
}

std::size_t gpt2_cut(const Characters& all, std::size_t i, bool&) {
  if (std::size_t end = english_ending(all, i); end > i) return end;
  std::size_t word = all[i] == ' ' ? i + 1 : i;
  if (word < all.size()) {
    for (bool (*is)(UChar32) : {is_letter, is_number, is_other}) {
      if (is(all[word])) return run_of(all, word, is);
    }
  }
  // White space: the last of several belongs to the word behind it.
  std::size_t end = run_of(all, i, is_white);
  return end < all.size() && end - i > 1 ? end - 1 : end;
}

std::size_t clip_cut(const Characters& all, std::size_t i, bool& stays) {
  if (std::size_t end = english_ending(all, i); end > i) return end;
  if (is_letter(all[i])) return run_of(all, i, is_letter);
  if (is_number(all[i])) return i + 1;
  stays = !is_white(all[i]);
  return run_of(all, i, stays ? is_other : is_white);
}

bool is_word_character(UChar32 c) {
  return u_isalnum(c) != 0 || c == '_' || (U_GET_GC_MASK(c) & (U_GC_M_MASK | U_GC_PC_MASK)) != 0;
}

// GPT-2 gives every byte a visible character: those that are visible stay, the others follow from U+0100 on.
const std::array<UChar32, 256>& letters_of_bytes() {
  static const std::array<UChar32, 256> letters = [] {
    std::array<UChar32, 256> made{};
    UChar32 next = 256;
    for (UChar32 byte = 0; byte < 256; ++byte) {
      bool visible = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
      made[static_cast<std::size_t>(byte)] = visible ? byte : next++;
    }
    return made;
  }();
  return letters;
}

struct Part {
  std::int32_t start, end;
  bool match;
};

std::vector<Part> parts_of(const icu::UnicodeString& text, const Expression& expression, bool inverted) {
  std::vector<Part> parts;
  std::int32_t done = 0;
  auto add = [&](std::int32_t start, std::int32_t end, bool match) {
    if (end > start) parts.push_back({start, end, match != inverted});
  };
  for (auto [start, end] : expression.matches(text)) {
    add(done, start, false);
    add(start, end, true);
    done = end;
  }
  add(done, text.length(), false);
  return parts;
}

std::vector<Part> behave(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Part> result;
  bool after_match = false;
  for (const Part& part : parts) {
    switch (behavior) {
      case SplitBehavior::removed:
        if (!part.match) result.push_back(part);
        break;
      case SplitBehavior::isolated:
        result.push_back(part);
        break;
      case SplitBehavior::contiguous:
        if (!result.empty() && part.match && after_match) {
          result.back().end = part.end;
        } else {
          result.push_back(part);
        }
        break;
      case SplitBehavior::merged_with_previous:
        if (!result.empty() && part.match && !after_match) {
          result.back().end = part.end;
        } else {
          result.push_back(part);
        }
        break;
      case SplitBehavior::merged_with_next:
        if (!result.empty() && !part.match && after_match) {
          result.back().end = part.end;
        } else {
          result.push_back(part);
        }
        break;
    }
    after_match = part.match;
  }
  return result;
}

}  // namespace

Splitter bert_splitter() {
  return by_characters([](const Characters& all, std::size_t i, bool& stays) {
    stays = !is_white(all[i]);
    if (!stays || is_punctuation(all[i])) return i + 1;
    return run_of(all, i, [](UChar32 c) { return !is_white(c) && !is_punctuation(c); });
  });
}

Splitter word_splitter() {
  return by_characters([](const Characters& all, std::size_t i, bool& stays) {
    stays = !is_white(all[i]);
    if (is_word_character(all[i])) return run_of(all, i, is_word_character);
    return run_of(all, i, [white = !stays](UChar32 c) { return is_white(c) == white && !is_word_character(c); });
  });
}

Splitter white_splitter() {
  return by_characters([](const Characters& all, std::size_t i, bool& stays) {
    stays = !is_white(all[i]);
    return run_of(all, i, [white = !stays](UChar32 c) { return is_white(c) == white; });
  });
}

Splitter punctuation_splitter() {
  return by_characters([](const Characters& all, std::size_t i, bool&) {
    return is_punctuation(all[i]) ? i + 1 : run_of(all, i, [](UChar32 c) { return !is_punctuation(c); });
  });
}

Splitter digit_splitter(bool each) {
  return by_characters([each](const Characters& all, std::size_t i, bool&) {
    bool digit = is_number(all[i]);
    if (digit && each) return i + 1;
    return run_of(all, i, [digit](UChar32 c) { return is_number(c) == digit; });
  });
}

Splitter gpt2_splitter() {
  return by_characters(gpt2_cut);
}

Splitter clip_splitter() {
  return by_characters(clip_cut);
}

Splitter expression_splitter(const std::string& expression, SplitBehavior behavior, bool inverted,
                             const std::string& where) {
  auto compiled = std::make_shared<Expression>(expression, where);
  return [compiled, behavior, inverted](Pieces& pieces) {
    Pieces result;
    for (const icu::UnicodeString& piece : pieces) {
      for (const Part& part : behave(parts_of(piece, *compiled, inverted), behavior))
        result.emplace_back(piece, part.start, part.end - part.start);
    }
    pieces = std::move(result);
  };
}

Splitter add_prefix_space() {
  return [](Pieces& pieces) {
    for (icu::UnicodeString& piece : pieces) {
      if (!piece.isEmpty() && piece.char32At(0) != ' ') piece.insert(0, UChar32{' '});
    }
  };
}

Splitter byte_letters() {
  return [](Pieces& pieces) {
    for (icu::UnicodeString& piece : pieces) {
      icu::UnicodeString letters;
      for (char c : to_utf8(piece)) letters.append(letters_of_bytes()[static_cast<unsigned char>(c)]);
      piece = letters;
    }
  };
}

std::string escape_expression(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 128 && u_isalnum(c) == 0) result += '\\';
    result += c;
  }
  return result;
}

}  // namespace galvani
