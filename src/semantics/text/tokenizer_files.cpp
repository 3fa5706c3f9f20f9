// Vocabularies without a tokenizer.json: what the families of networks that have them do is known.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/nesting.h"
#include "semantics/text/tokenizer.h"

namespace galvani {
namespace {

using nlohmann::json;

constexpr std::int64_t kLongestBert = 512;
constexpr std::int64_t kLongestClip = 77;
constexpr std::int64_t kLongestGpt2 = 1024;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  while (start < text.size()) {
    std::size_t end = std::min(text.find('\n', start), text.size());
    std::size_t last = end > start && text[end - 1] == '\r' ? end - 1 : end;
    lines.push_back(text.substr(start, last - start));
    start = end + 1;
  }
  return lines;
}

std::int64_t need(const Vocabulary& vocabulary, const std::string& token, const std::string& where) {
  auto found = vocabulary.find(token);
  if (found == vocabulary.end()) bad_input("{}: is not a vocabulary of BERT's kind: it has no '{}'", where, token);
  return found->second;
}

bool has_capitals(const Vocabulary& vocabulary) {
  return std::any_of(vocabulary.begin(), vocabulary.end(), [](const auto& entry) {
    const std::string& token = entry.first;
    return token[0] != '[' && std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  });
}

Vocabulary read_numbers(const std::string& text, const std::string& where) {
  json j = parse_json<json>(text);
  if (!j.is_object() || j.empty()) bad_input("{}: is no JSON object of tokens and their numbers", where);
  Vocabulary vocabulary;
  for (const auto& [token, id] : j.items()) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0)
      bad_input("{}: the number of token '{}' is none", where, printable(token));
    vocabulary.emplace(token, id.get<std::int64_t>());
  }
  return vocabulary;
}

std::vector<std::pair<std::string, std::string>> read_merges(const std::string& text, const std::string& where) {
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<std::string> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.empty() || (i == 0 && line.rfind("#version", 0) == 0)) continue;
    std::size_t blank = line.find(' ');
    if (blank == std::string::npos || blank == 0 || blank + 1 == line.size() ||
        line.find(' ', blank + 1) != std::string::npos)
      bad_input("{}: line {} is not two pieces with a blank between them", where, i + 1);
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  if (merges.empty()) bad_input("{}: holds no merges", where);
  return merges;
}

}  // namespace

TokenizerParts read_vocab_txt(const std::string& text, const std::string& where) {
  Vocabulary vocabulary;
  std::vector<std::string> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) bad_input("{}: line {} is empty, where a token should be", where, i + 1);
    vocabulary.emplace(lines[i], static_cast<std::int64_t>(i));
  }
  TokenizerParts parts;
  parts.before = {need(vocabulary, "[CLS]", where)};
  parts.after = {need(vocabulary, "[SEP]", where)};
  parts.padding = need(vocabulary, "[PAD]", where);
  for (const char* token : {"[CLS]", "[SEP]", "[PAD]", "[UNK]"})
    parts.added.push_back({token, need(vocabulary, token, where)});
  if (vocabulary.count("[MASK]") > 0) parts.added.push_back({"[MASK]", vocabulary.at("[MASK]")});
  BertNormalization how;
  how.lower = how.strip_accents = !has_capitals(vocabulary);
  parts.normalizers = {bert_normalizer(how)};
  parts.splitters = {bert_splitter()};
  WordPieceRules rules;
  rules.unknown = need(vocabulary, "[UNK]", where);
  parts.pieces = word_pieces(std::move(vocabulary), rules);
  parts.longest = kLongestBert;
  return parts;
}

TokenizerParts read_vocab_json(const std::string& vocab_text, const std::string& merges_text, const std::string& where,
                               const std::string& merges_where) {
  Vocabulary vocabulary = read_numbers(vocab_text, where);
  auto merges = read_merges(merges_text, merges_where);
  auto id = [&](const char* token) {
    auto found = vocabulary.find(token);
    return found == vocabulary.end() ? std::int64_t{-1} : found->second;
  };
  TokenizerParts parts;
  BytePairRules rules;
  std::int64_t end_of_text = id("<|endoftext|>");
  if (id("<|startoftext|>") >= 0 && end_of_text >= 0) {  // CLIP
    parts.normalizers = {unicode_form("nfc"), replace_matches("\\s+", " ", where), to_lower};
    parts.splitters = {clip_splitter(), byte_letters()};
    parts.before = {id("<|startoftext|>")};
    parts.after = {end_of_text};
    rules.word_end = "</w>";
    rules.unknown = end_of_text;
    parts.longest = kLongestClip;
    parts.padding = end_of_text;
    parts.last_sums_up = true;
    parts.added = {{"<|startoftext|>", id("<|startoftext|>")}, {"<|endoftext|>", end_of_text}};
  } else if (id("<s>") >= 0 && id("</s>") >= 0) {  // RoBERTa
    parts.splitters = {gpt2_splitter(), byte_letters()};
    parts.before = {id("<s>")};
    parts.after = {id("</s>")};
    rules.unknown = id("<unk>");
    parts.longest = kLongestBert;
    parts.padding = std::max<std::int64_t>(0, id("<pad>"));
    for (const char* token : {"<s>", "</s>", "<pad>", "<unk>"}) {
      if (id(token) >= 0) parts.added.push_back({token, id(token)});
    }
    if (id("<mask>") >= 0) parts.added.push_back({"<mask>", id("<mask>"), /*eats_left=*/true});
  } else if (end_of_text >= 0) {  // GPT-2
    parts.splitters = {gpt2_splitter(), byte_letters()};
    parts.longest = kLongestGpt2;
    parts.padding = end_of_text;
    parts.last_sums_up = true;
    parts.added = {{"<|endoftext|>", end_of_text}};
  } else {
    bad_input("{}: is not a vocabulary as GPT-2, RoBERTa or CLIP have it: it has neither <|endoftext|> nor <s>", where);
  }
  parts.pieces = byte_pairs(std::move(vocabulary), merges, rules);
  return parts;
}

}  // namespace galvani
