#include "galvani/base/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"

namespace galvani {
namespace {

TEST(JsonText, IsWhatTheListsSay) {
  std::vector<std::int64_t> none;
  Json value = {{"list", {1, -2, 2.5F}}, {"text", "a"}, {"no", nullptr}, {"yes", true}, {"none", none}};
  value["more"]["deep"] = {{"x", std::numeric_limits<std::uint64_t>::max()}};
  value["rows"] = Json::array();
  value["rows"].push_back({"a", 1});
  value["rows"].push_back({{"a", 1}});
  value["rows"][1]["a"] = Json::object();
  EXPECT_EQ(json_text(value), R"({"list":[1,-2,2.5],"more":{"deep":{"x":18446744073709551615}},"no":null,"none":[],)"
                              R"("rows":[["a",1],{"a":{}}],"text":"a","yes":true})");
  EXPECT_EQ(json_text({"a", "b"}, 1), "[\n \"a\",\n \"b\"\n]");
  EXPECT_EQ(json_text(Json()), "null");
  EXPECT_EQ(json_text(1.0), "1.0");
  EXPECT_EQ(json_text(std::numeric_limits<double>::quiet_NaN()), "null") << "JSON has no such number";
}

TEST(JsonText, ComesBack) {
  std::string text = R"({"a":[1,-2,2.5,null,true,"x",{"b":[]}]})";
  EXPECT_EQ(json_text(Json::parse(text)), text);
  EXPECT_THROW(Json::parse("{"), Error);
}

TEST(JsonText, AnyBytesGiveJson) {
  Json value = {{"path", "m\xff.onnx"}, {"\xfe", {1, 2.5}}};
  nlohmann::json back = nlohmann::json::parse(json_text(value, 1));
  EXPECT_EQ(back["path"], "m\xef\xbf\xbd.onnx");
  EXPECT_TRUE(back.contains("\xef\xbf\xbd"));
}

TEST(JsonText, NothingInItDrivesATerminal) {
  // ESC, DEL, CSI of C1 and a right-to-left override.
  Json value = {"\x1b[31m", "\x7f", "\xc2\x9b-", "\xe2\x80\xae", "grün 漢字"};
  EXPECT_EQ(json_text(value), R"(["\u001b[31m","\u007f","\u009b-","\u202e","grün 漢字"])");
  EXPECT_EQ(json_text(Json::parse(json_text(value, 2))), json_text(value));
}

}  // namespace
}  // namespace galvani
