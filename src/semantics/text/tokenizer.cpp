#include "semantics/text/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/nesting.h"
#include "galvani/base/utf8.h"
#include "semantics/text/unicode.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{256} << 20;

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool in_word(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte >= 128 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool stands_alone(std::string_view text, std::size_t start, std::size_t end) {
  return (start == 0 || !in_word(text[start - 1])) && (end == text.size() || !in_word(text[end]));
}

struct Found {
  std::size_t place = std::string_view::npos;
  const AddedToken* token = nullptr;
};

// The leftmost from `start` on, and the longest of those that begin there.
Found find_added(std::string_view text, std::size_t start, const std::vector<AddedToken>& added) {
  Found best;
  for (const AddedToken& token : added) {
    if (token.text.empty()) continue;
    for (std::size_t place = text.find(token.text, start); place != std::string_view::npos;
         place = text.find(token.text, place + 1)) {
      if (token.whole_word && !stands_alone(text, place, place + token.text.size())) continue;
      bool longer = best.token != nullptr && place == best.place && token.text.size() > best.token->text.size();
      if (place < best.place || longer) best = {place, &token};
      break;
    }
  }
  return best;
}

fs::path file_in(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "vocab.json", "vocab.txt"}) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / name, ignored)) return folder / name;
  }
  bad_input("{}: holds no tokenizer.json, vocab.json or vocab.txt", folder.string());
}

// A tokenizer.json says what its model is; a vocabulary has a number for the word "model" at most.
bool is_whole_tokenizer(const std::string& text, const std::string& where) {
  auto j = parse_json<nlohmann::json>(text);
  if (j.is_discarded()) bad_input("{}: is no JSON; it may be cut short", where);
  if (j.contains("model") && j["model"].is_object()) return true;
  bool numbers = std::all_of(j.begin(), j.end(), [](const nlohmann::json& value) { return value.is_number_integer(); });
  if (!j.is_object() || j.empty() || !numbers)
    bad_input("{}: is neither a tokenizer, which has a model, nor a vocabulary of tokens and their numbers", where);
  return false;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}

Tokenizer Tokenizer::load(const fs::path& path, const fs::path& merges) {
  std::error_code ignored;
  fs::path file = fs::is_directory(path, ignored) ? file_in(path) : path;
  std::string text = read_file(file, kLargestFile);
  std::string where = file.string();
  if (!is_utf8(text)) bad_input("{}: is no text in UTF-8", where);
  std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos) bad_input("{}: is empty", where);
  std::map<std::string, std::string> files = {{where, sha256(text)}};
  TokenizerParts parts;
  if (text[start] != '{') {
    parts = read_vocab_txt(text, where);
  } else if (is_whole_tokenizer(text, where)) {
    parts = read_tokenizer_json(text, where);
  } else {
    fs::path beside = merges.empty() ? file.parent_path() / "merges.txt" : merges;
    std::string rules = read_file(beside, kLargestFile);
    files[beside.string()] = sha256(rules);
    parts = read_vocab_json(text, rules, where, beside.string());
  }
  Tokenizer tokenizer(std::move(parts));
  tokenizer.files_ = std::move(files);
  return tokenizer;
}

void Tokenizer::encode_plain(std::string_view text, std::vector<std::int64_t>& ids) const {
  if (text.empty()) return;
  icu::UnicodeString normal = from_utf8(text);
  for (const TextStep& step : parts_.normalizers) step(normal);
  std::vector<icu::UnicodeString> words = {normal};
  for (const Splitter& split : parts_.splitters) split(words);
  for (const icu::UnicodeString& word : words) {
    if (!word.isEmpty()) parts_.pieces->add(to_utf8(word), ids);
  }
}

std::vector<std::int64_t> Tokenizer::encode(const std::string& text, std::int64_t longest) const {
  std::vector<std::int64_t> ids;
  std::string_view rest = text;
  std::size_t start = 0;
  while (start <= rest.size()) {
    Found next = find_added(rest, start, parts_.added);
    std::size_t end = std::min(next.place, rest.size());
    std::size_t stop = end;
    while (next.token != nullptr && next.token->eats_left && stop > start && blank(rest[stop - 1])) --stop;
    encode_plain(rest.substr(start, stop - start), ids);
    if (next.token == nullptr) break;
    ids.push_back(next.token->id);
    start = end + next.token->text.size();
    while (next.token->eats_right && start < rest.size() && blank(rest[start])) ++start;
  }
  auto around = static_cast<std::int64_t>(parts_.before.size() + parts_.after.size());
  if (longest == 0) longest = parts_.longest;
  auto room = static_cast<std::size_t>(std::max<std::int64_t>(0, longest - around));
  if (longest > 0 && ids.size() > room) ids.resize(room);
  ids.insert(ids.begin(), parts_.before.begin(), parts_.before.end());
  ids.insert(ids.end(), parts_.after.begin(), parts_.after.end());
  return ids;
}

}  // namespace galvani
