// Hugging Face's tokenizer.json: a pipeline described by kinds and settings.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/nesting.h"
#include "semantics/text/tokenizer.h"

namespace galvani {
namespace {

using nlohmann::json;

class JsonTokenizer {
 public:
  explicit JsonTokenizer(const std::string& where) : where_(where) {}

  TokenizerParts read(const json& j) {
    add_tokens(j.value("added_tokens", json::array()));
    add_normalizer(j.value("normalizer", json()));
    add_splitter(j.value("pre_tokenizer", json()));
    add_model(j.at("model"));
    add_around(j.value("post_processor", json()));
    json cut = j.value("truncation", json());
    if (cut.is_object()) parts_.longest = bounded(cut.at("max_length"), "max_length");
    json fill = j.value("padding", json());
    if (fill.is_object()) parts_.padding = bounded(fill.at("pad_id"), "pad_id");
    return std::move(parts_);
  }

 private:
  [[noreturn]] void unknown(const char* what, const std::string& kind) const {
    bad_input("{}: a {} of the kind '{}' is not supported", where_, what, printable(kind));
  }

  std::int64_t bounded(const json& value, const char* what) const {
    auto number = value.get<std::int64_t>();
    if (number < 0 || number > (1 << 30)) bad_input("{}: '{}' is {}", where_, what, number);
    return number;
  }

  void add_tokens(const json& tokens) {
    for (const json& token : tokens) {
      AddedToken added;
      added.text = token.at("content").get<std::string>();
      added.id = bounded(token.at("id"), "id");
      added.eats_left = token.value("lstrip", false);
      added.eats_right = token.value("rstrip", false);
      added.whole_word = token.value("single_word", false);
      numbers_[added.text] = added.id;
      parts_.added.push_back(std::move(added));
    }
  }

  void add_normalizer(const json& j) {
    if (j.is_null()) return;
    auto kind = j.at("type").get<std::string>();
    auto& steps = parts_.normalizers;
    if (kind == "Sequence") {
      for (const json& part : j.at("normalizers")) add_normalizer(part);
    } else if (kind == "BertNormalizer") {
      BertNormalization how;
      how.clean = j.value("clean_text", true);
      how.ideographs = j.value("handle_chinese_chars", true);
      how.lower = j.value("lowercase", true);
      json accents = j.value("strip_accents", json());
      how.strip_accents = accents.is_null() ? how.lower : accents.get<bool>();
      steps.push_back(bert_normalizer(how));
    } else if (kind == "Lowercase") {
      steps.emplace_back(to_lower);
    } else if (kind == "StripAccents") {
      steps.emplace_back(strip_marks);
    } else if (kind == "NFC" || kind == "NFD" || kind == "NFKC" || kind == "NFKD") {
      std::string form = kind;
      std::transform(form.begin(), form.end(), form.begin(), [](char c) { return static_cast<char>(c | 32); });
      steps.push_back(unicode_form(form));
    } else if (kind == "Replace") {
      auto by = j.at("content").get<std::string>();
      const json& pattern = j.at("pattern");
      steps.push_back(pattern.contains("String") ? replace_text(pattern.at("String").get<std::string>(), by)
                                                 : replace_matches(pattern.at("Regex").get<std::string>(), by, where_));
    } else if (kind == "Strip") {
      steps.push_back(strip_white(j.value("strip_left", true), j.value("strip_right", true)));
    } else {
      unknown("normalizer", kind);
    }
  }

  void add_splitter(const json& j) {
    if (j.is_null()) return;
    auto kind = j.at("type").get<std::string>();
    auto& splitters = parts_.splitters;
    if (kind == "Sequence") {
      for (const json& part : j.at("pretokenizers")) add_splitter(part);
    } else if (kind == "BertPreTokenizer") {
      splitters.push_back(bert_splitter());
    } else if (kind == "Whitespace") {
      splitters.push_back(word_splitter());
    } else if (kind == "WhitespaceSplit") {
      splitters.push_back(white_splitter());
    } else if (kind == "Punctuation") {
      if (j.value("behavior", "Isolated") != "Isolated") unknown("pre-tokenizer", kind + " that joins");
      splitters.push_back(punctuation_splitter());
    } else if (kind == "Digits") {
      splitters.push_back(digit_splitter(j.value("individual_digits", false)));
    } else if (kind == "ByteLevel") {
      if (j.value("add_prefix_space", true)) splitters.push_back(add_prefix_space());
      if (j.value("use_regex", true)) splitters.push_back(gpt2_splitter());
      splitters.push_back(byte_letters());
      byte_level_ = true;
    } else if (kind == "Split") {
      const json& pattern = j.at("pattern");
      std::string expression = pattern.contains("String") ? escape_expression(pattern.at("String").get<std::string>())
                                                          : pattern.at("Regex").get<std::string>();
      splitters.push_back(expression_splitter(expression, behavior(j.at("behavior").get<std::string>()),
                                              j.value("invert", false), where_));
    } else {
      unknown("pre-tokenizer", kind);
    }
  }

  SplitBehavior behavior(const std::string& name) const {
    if (name == "Removed") return SplitBehavior::removed;
    if (name == "Isolated") return SplitBehavior::isolated;
    if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
    if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
    if (name == "Contiguous") return SplitBehavior::contiguous;
    unknown("split", name);
  }

  static std::string text_or_empty(const json& j, const char* key) {
    json value = j.value(key, json());
    return value.is_string() ? value.get<std::string>() : "";
  }

  void add_model(const json& j) {
    // Files of the first years name no type.
    std::string kind = j.contains("type")     ? j.at("type").get<std::string>()
                       : j.contains("merges") ? "BPE"
                                              : "WordPiece";
    if (kind != "WordPiece" && kind != "BPE") unknown("model", kind);
    Vocabulary vocabulary;
    for (const auto& [token, id] : j.at("vocab").items()) vocabulary.emplace(token, bounded(id, "vocab"));
    if (vocabulary.empty()) bad_input("{}: its vocabulary is empty", where_);
    for (const auto& [token, id] : vocabulary) numbers_.emplace(token, id);
    std::string unknown_token = text_or_empty(j, "unk_token");
    auto found = vocabulary.find(unknown_token);
    std::int64_t unknown_id = found == vocabulary.end() ? -1 : found->second;
    if (kind == "WordPiece") {
      WordPieceRules rules;
      if (unknown_id < 0) bad_input("{}: its vocabulary has no token for unknown words", where_);
      rules.unknown = unknown_id;
      rules.continuation = j.value("continuing_subword_prefix", "##");
      rules.longest = bounded(j.value("max_input_chars_per_word", json(100)), "max_input_chars_per_word");
      parts_.pieces = word_pieces(std::move(vocabulary), rules);
      return;
    }
    BytePairRules rules;
    rules.unknown = unknown_id;
    rules.continuation = text_or_empty(j, "continuing_subword_prefix");
    rules.word_end = text_or_empty(j, "end_of_word_suffix");
    rules.join_unknown = j.value("fuse_unk", false);
    rules.bytes = j.value("byte_fallback", false);
    rules.whole_words = j.value("ignore_merges", false);
    parts_.last_sums_up = byte_level_ && numbers_.count("</s>") == 0;
    parts_.pieces = byte_pairs(std::move(vocabulary), merges_of(j.at("merges")), rules);
  }

  // ["a b", ...] or [["a", "b"], ...]
  std::vector<std::pair<std::string, std::string>> merges_of(const json& list) const {
    std::vector<std::pair<std::string, std::string>> merges;
    for (const json& merge : list) {
      if (merge.is_array() && merge.size() == 2) {
        merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        continue;
      }
      auto text = merge.get<std::string>();
      std::size_t blank = text.find(' ');
      if (blank == std::string::npos) bad_input("{}: the merge '{}' is not of two pieces", where_, printable(text));
      merges.emplace_back(text.substr(0, blank), text.substr(blank + 1));
    }
    return merges;
  }

  void add_around(const json& j) {
    if (j.is_null()) return;
    auto kind = j.at("type").get<std::string>();
    if (kind == "Sequence") {
      for (const json& part : j.at("processors")) add_around(part);
    } else if (kind == "BertProcessing" || kind == "RobertaProcessing") {
      parts_.before = {bounded(j.at("cls").at(1), "cls")};
      parts_.after = {bounded(j.at("sep").at(1), "sep")};
    } else if (kind == "TemplateProcessing") {
      add_template(j);
    } else if (kind != "ByteLevel") {  // which only trims the places of tokens
      unknown("post-processor", kind);
    }
  }

  void add_template(const json& j) {
    bool behind = false;
    for (const json& item : j.at("single")) {
      if (item.contains("Sequence")) {
        behind = true;
        continue;
      }
      auto name = item.at("SpecialToken").at("id").get<std::string>();
      for (const json& id : j.at("special_tokens").at(name).at("ids"))
        (behind ? parts_.after : parts_.before).push_back(bounded(id, "ids"));
    }
    if (!behind) bad_input("{}: its template has no place for the text", where_);
  }

  const std::string& where_;
  TokenizerParts parts_;
  Vocabulary numbers_;
  bool byte_level_ = false;
};

}  // namespace

TokenizerParts read_tokenizer_json(const std::string& text, const std::string& where) {
  json j = parse_json<json>(text);
  if (j.is_discarded()) bad_input("{}: is no JSON; it may be cut short", where);
  try {
    return JsonTokenizer(where).read(j);
  } catch (const json::exception& e) {
    bad_input("{}: is not a tokenizer as expected: {}", where, printable(e.what()));
  }
}

}  // namespace galvani
