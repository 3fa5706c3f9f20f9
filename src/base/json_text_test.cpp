#include "galvani/base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace galvani {
namespace {

using nlohmann::json;

TEST(JsonText, AnyBytesGiveJson) {
  json value = {{"path", "m\xff.onnx"}, {"\xfe", {1, 2.5}}};
  json back = json::parse(json_text(value, 1));
  EXPECT_EQ(back["path"], "m\xef\xbf\xbd.onnx");
  EXPECT_TRUE(back.contains("\xef\xbf\xbd"));
}

TEST(JsonText, NothingInItDrivesATerminal) {
  // ESC, DEL, CSI of C1 and a right-to-left override.
  json value = {"\x1b[31m", "\x7f", "\xc2\x9b-", "\xe2\x80\xae", "grün 漢字"};
  EXPECT_EQ(json_text(value), R"(["\u001b[31m","\u007f","\u009b-","\u202e","grün 漢字"])");
  EXPECT_EQ(json::parse(json_text(value, 2)), value);
}

}  // namespace
}  // namespace galvani
