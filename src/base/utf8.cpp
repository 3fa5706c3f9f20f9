#include "galvani/base/utf8.h"

#include <fmt/format.h>

#include <charconv>

namespace galvani {
namespace {

constexpr std::string_view kPercent = "percent:";

}  // namespace

Character first_character(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  char32_t code = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return {};
    code = code << 6 | (next & 0x3fU);
  }
  static constexpr char32_t kLeast[] = {0x80, 0x800, 0x10000};  // of two, three and four bytes
  bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[length - 2] || code > 0x10ffff || surrogate) return {};
  return {code, length, true};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    Character c = first_character(text);
    if (!c.valid) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

bool drives_terminal(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string bytes_to_utf8(std::string_view bytes) {
  if (is_utf8(bytes) && bytes.substr(0, kPercent.size()) != kPercent) return std::string(bytes);
  std::string text(kPercent);
  while (!bytes.empty()) {
    Character c = first_character(bytes);
    if (c.valid && c.code != '%') {
      text += bytes.substr(0, c.length);
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(bytes[0]));
    }
    bytes.remove_prefix(c.length);
  }
  return text;
}

std::string utf8_to_bytes(std::string_view text) {
  if (text.substr(0, kPercent.size()) != kPercent) return std::string(text);
  text.remove_prefix(kPercent.size());
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned int byte = 0;
    const char* digits = text.data() + i + 1;
    bool escape =
        text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    bytes += escape ? static_cast<char>(byte) : text[i];
    if (escape) i += 2;
  }
  return bytes;
}

}  // namespace galvani
