#include "galvani/base/options.h"

#include <gtest/gtest.h>

#include "galvani/base/error.h"

namespace galvani {
namespace {

// The message of the usage error that `action` ends in; empty if it does not.
template <class Action>
std::string usage_refusal(Action action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
    return e.what();
  }
  return "";
}

struct ParseCase {
  std::string text;
  std::vector<std::string> specs;  // as str() writes them; empty: refused
  std::string complaint;           // a part of the message
};

class SpecText : public testing::TestWithParam<ParseCase> {};

TEST_P(SpecText, ParsesOrSaysWhy) {
  const ParseCase& c = GetParam();
  std::vector<std::string> found;
  std::string message = usage_refusal([&] {
    for (const Spec& spec : Spec::parse_list(c.text)) found.push_back(spec.str());
  });
  EXPECT_EQ(found, c.specs);
  if (c.complaint.empty()) {
    EXPECT_EQ(message, "");
  } else {
    EXPECT_NE(message.find(c.complaint), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SpecText,
                         testing::Values(ParseCase{"kmnc", {"kmnc"}, ""}, ParseCase{"kmnc:k=1000", {"kmnc:k=1000"}, ""},
                                         ParseCase{"a:x=1,y=2,b,c:z=3", {"a:x=1,y=2", "b", "c:z=3"}, ""},
                                         ParseCase{"a,b=2", {"a:b=2"}, ""},      // a setting of the spec to its left
                                         ParseCase{"a:x=", {"a:x="}, ""},        // an empty value is a value
                                         ParseCase{"a:x=b:c", {"a:x=b:c"}, ""},  // a colon inside a value
                                         ParseCase{"a:x=1=2", {"a:x=1=2"}, ""},  // an equals sign inside a value
                                         ParseCase{"a:x=(b,c:y=1),z=2,d", {"a:x=(b,c:y=1),z=2", "d"}, ""},
                                         ParseCase{"a:x=(b)", {"a:x=b"}, ""},          // needed only with commas
                                         ParseCase{"a:x=(b)(c)", {"a:x=(b)(c)"}, ""},  // not one pair around all
                                         ParseCase{"a:x=((b,c))", {"a:x=((b,c))"}, ""},
                                         ParseCase{"a:x=(b", {}, "does not close a parenthesis"},
                                         ParseCase{"a:x=b)", {}, "closes a parenthesis that is not open"},
                                         ParseCase{"", {}, "a name is missing"},                 //
                                         ParseCase{"a,,b", {}, "a name is missing in 'a,,b'"},   //
                                         ParseCase{"a,", {}, "a name is missing in 'a,'"},       //
                                         ParseCase{":k=1", {}, "a name is missing"},             //
                                         ParseCase{"k=1", {}, "sets an option of nothing"},      //
                                         ParseCase{"a:", {}, "not of the form name:key=value"},  //
                                         ParseCase{"a:k", {}, "not of the form name:key=value"},
                                         ParseCase{"a:k=1,k=2", {}, "option 'k' of 'a' is given twice"}));

TEST(Spec, ParseWantsExactlyOne) {
  EXPECT_EQ(Spec::parse("sgd:lr=0.1,momentum=0").settings.size(), 2U);
  EXPECT_NE(usage_refusal([] { Spec::parse("a,b"); }).find("names 2 things"), std::string::npos);
}

OptionSchema schema() {
  return {{"k", std::int64_t{100}, "sections", 1.0, 1000.0, {}},
          {"rate", 0.5, "a share", 0.0, 1.0, {}},
          {"at_least", 1.0, "bounded below only", 0.5, {}, {}},
          {"at_most", 1.0, "bounded above only", {}, 2.0, {}},
          {"free", 0.0, "unbounded", {}, {}, {}},
          {"fast", false, "a flag", {}, {}, {}},
          {"mode", std::string("auto"), "a choice", {}, {}, {"auto", "small", "large"}},
          {"label", std::string("x"), "any text", {}, {}, {}}};
}

Options options(const std::string& spec) {
  return Options("thing", schema(), Spec::parse(spec));
}

TEST(OptionsTable, DefaultsAndSettings) {
  Options defaults = options("thing");
  EXPECT_EQ(defaults.integer("k"), 100);
  EXPECT_EQ(defaults.real("rate"), 0.5);
  EXPECT_FALSE(defaults.flag("fast"));
  EXPECT_EQ(defaults.text("mode"), "auto");
  EXPECT_EQ(defaults.str(), "thing:k=100,rate=0.5,at_least=1,at_most=1,free=0,fast=false,mode=auto,label=x");
  Options set = options("thing:label=hello,k=1,fast=on,mode=large,free=-1e3,rate=1");
  EXPECT_EQ(set.integer("k"), 1);
  EXPECT_TRUE(set.flag("fast"));
  EXPECT_EQ(set.text("mode"), "large");
  EXPECT_EQ(set.real("free"), -1000);
  // Schema order, whatever the order they were given in; what it writes gives the same values again.
  EXPECT_EQ(set.str(), options(set.str()).str());
  EXPECT_EQ(set.str().find("thing:k=1,rate=1,"), 0U);
}

TEST(OptionsTable, FlagsHaveFourSpellingsOfEachValue) {
  for (const char* word : {"true", "yes", "on", "1"})
    EXPECT_TRUE(options(std::string("thing:fast=") + word).flag("fast")) << word;
  for (const char* word : {"false", "no", "off", "0"})
    EXPECT_FALSE(options(std::string("thing:fast=") + word).flag("fast")) << word;
}

struct Refused {
  const char* spec;
  const char* complaint;
};

TEST(OptionsTable, RefusalsNameOwnerOptionAndWhatIsAccepted) {
  for (const Refused& c : std::initializer_list<Refused>{
           {"thing:k=0", "thing: option 'k' is 0, but must be from 1 to 1000"},
           {"thing:k=1001", "thing: option 'k' is 1001, but must be from 1 to 1000"},
           {"thing:k=ten", "thing: option 'k' is 'ten', but must be a whole number"},
           {"thing:k=1.5", "thing: option 'k' is '1.5', but must be a whole number"},
           {"thing:k=", "thing: option 'k' is '', but must be a whole number"},
           {"thing:k=99999999999999999999", "must be a whole number"},
           {"thing:rate=1.01", "thing: option 'rate' is 1.01, but must be from 0 to 1"},
           {"thing:rate=", "thing: option 'rate' is '', but must be a number"},
           {"thing:rate=half", "thing: option 'rate' is 'half', but must be a number"},
           {"thing:rate=0.5x", "thing: option 'rate' is '0.5x', but must be a number"},
           {"thing:rate=nan", "option 'rate'"},
           {"thing:free=inf", "must be a finite number"},
           {"thing:at_least=0.4", "must be at least 0.5"},
           {"thing:at_most=2.1", "must be at most 2"},
           {"thing:fast=maybe", "thing: option 'fast' is 'maybe', but must be true or false"},
           {"thing:label=", "thing: option 'label' is empty"},
           {"thing:mode=huge", "thing: option 'mode' is 'huge', but must be one of auto, small, large"},
           {"thing:mod=auto", "thing: has no option 'mod'; did you mean 'mode'?"},
           {"thing:zzzzzzzz=1", "thing: has no option 'zzzzzzzz'; it has k, rate"},
       }) {
    std::string message = usage_refusal([&] { options(c.spec); });
    EXPECT_NE(message.find(c.complaint), std::string::npos) << c.spec << ": " << message;
  }
}

TEST(OptionsTable, AComponentWithoutOptionsSaysSo) {
  std::string message = usage_refusal([] { Options("none", {}, Spec::parse("none:k=1")); });
  EXPECT_EQ(message, "none: takes no options, but 'k' was given");
}

TEST(OptionsTable, AskingForAnUndeclaredOptionIsOurMistake) {
  try {
    options("thing").integer("undeclared");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::internal);
  }
}

TEST(NearestWord, FindsTyposAndNothingElse) {
  std::vector<std::string> known = {"lenet5", "resnet20", "vgg16"};
  EXPECT_EQ(nearest_word("lenet", known), "lenet5");
  EXPECT_EQ(nearest_word("resnet02", known), "resnet20");
  EXPECT_EQ(nearest_word("vgg16", known), "vgg16");
  EXPECT_EQ(nearest_word("transformer", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word("x", {}), "");
}

TEST(Printable, ReplacesControlCharactersAndCutsLongText) {
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a?b?[31m?");
  EXPECT_EQ(printable("grün"), "grün");
  EXPECT_EQ(printable("12345", 3), "123...");
  EXPECT_EQ(printable("123", 3), "123");
  EXPECT_EQ(printable("grün", 3), "gr...");
  EXPECT_EQ(printable(std::string(1000, 'x'), kWholeText), std::string(1000, 'x'));
}

TEST(Printable, ReplacesWhatDrivesATerminalAndWhatIsNoText) {
  EXPECT_EQ(printable("a\xc2\x9b-"), "a?-");                   // CSI of C1
  EXPECT_EQ(printable("a\xe2\x80\xae-\xe2\x81\xa6"), "a?-?");  // right-to-left override, isolate
  EXPECT_EQ(printable("m\xff.onnx\xc3"), "m?.onnx?");
  EXPECT_EQ(printable("\xc0\x9b\xed\xa0\x80"), "?????");
  EXPECT_EQ(printable("漢字 – \xf0\x9f\x98\x80"), "漢字 – \xf0\x9f\x98\x80");
}

}  // namespace
}  // namespace galvani
