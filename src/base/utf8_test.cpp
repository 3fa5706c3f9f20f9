#include "galvani/base/utf8.h"

#include <gtest/gtest.h>

namespace galvani {
namespace {

TEST(Utf8, CharactersAndWhatIsNone) {
  struct Case {
    std::string_view text;
    char32_t code;
    std::size_t length;
  };
  for (const Case& c : {Case{"a", 'a', 1},
                        {"\xc3\xbc", 0xfc, 2},
                        {"\xe6\xbc\xa2", 0x6f22, 3},
                        {"\xf0\x9f\x98\x80", 0x1f600, 4},
                        {"\xef\xbf\xbf", 0xffff, 3},
                        {"\xf4\x8f\xbf\xbf", 0x10ffff, 4}}) {
    Character found = first_character(c.text);
    EXPECT_TRUE(found.valid) << c.text;
    EXPECT_EQ(found.code, c.code);
    EXPECT_EQ(found.length, c.length);
  }
  // Bytes of the middle, cut off, longer than need be, surrogates, beyond the last (RFC 3629).
  for (std::string_view text : {"\x80", "\xc3", "\xc3(", "\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                "\xff", "\xf0\x9f\x98"}) {
    EXPECT_FALSE(first_character(text).valid);
    EXPECT_EQ(first_character(text).length, 1U);
    EXPECT_FALSE(is_utf8(text));
    EXPECT_FALSE(is_utf8("fine" + std::string(text)));
  }
  EXPECT_TRUE(is_utf8("grün 漢字"));
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8, AnyBytesComeBack) {
  for (std::string text : {"", "plain", "100%41", "grün", "percent:", "percent:%41", "\xff", "m\xff%zz.onnx", "%\xfe%",
                           "\xc3", "percent:\xff"}) {
    std::string written = bytes_to_utf8(text);
    EXPECT_TRUE(is_utf8(written)) << written;
    EXPECT_EQ(utf8_to_bytes(written), text);
  }
  EXPECT_EQ(bytes_to_utf8("100%41 grün"), "100%41 grün");
  EXPECT_EQ(bytes_to_utf8("ü\xff%"), "percent:ü%FF%25");
}

}  // namespace
}  // namespace galvani
