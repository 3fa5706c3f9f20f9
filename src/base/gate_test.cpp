#include "galvani/base/gate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "galvani/base/error.h"

namespace galvani {
namespace {

template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    return e.what();
  }
  return "";
}

TEST(Gate, ComparesAFigureWithABound) {
  Figures figures = {{"faults", 3}, {"rft", 0.25}, {"nan", std::nan("")}, {"kmnc:k=1000", 0.5}};
  for (const char* holds : {"faults>2", "faults >= 3", " faults<=3", "rft<0.3", "rft==0.25", "rft != 0.3",
                            "kmnc:k=1000>=0.5", "faults>-1e3"})
    EXPECT_TRUE(Gate(holds).met(figures)) << holds;
  for (const char* does_not :
       {"faults>3", "faults<3", "rft>=0.26", "rft<=0.2", "rft==0.3", "rft!=0.25", "kmnc:k=1000>1"})
    EXPECT_FALSE(Gate(does_not).met(figures)) << does_not;
  EXPECT_EQ(Gate("rft<1").value(figures), 0.25);
}

TEST(Gate, NothingIsKnownOfWhatIsNotANumber) {
  Figures figures = {{"x", std::nan("")}};
  for (const char* text : {"x>0", "x<0", "x>=0", "x<=0", "x==0"}) EXPECT_FALSE(Gate(text).met(figures)) << text;
  EXPECT_TRUE(Gate("x!=0").met(figures));
}

TEST(Gate, OtherTextsAreNoConditions) {
  for (const char* wrong : {"", "faults", "faults>", "faults>x", "faults=>3", "faults=3", ">3", " >3", "faults>3 2",
                            "faults>inf", "faults>nan", "faults>1e999", "faults><3"})
    EXPECT_NE(refusal([&] { Gate gate(wrong); }).find("is not a condition"), std::string::npos) << wrong;
}

TEST(Gate, AnUnknownFigureIsRefusedWithThoseThereAre) {
  EXPECT_EQ(parse_gates({"faults>1", "oi<0.5"}, {"faults", "oi"}).size(), 2U);
  std::string text = refusal([] { parse_gates({"faults>1", "fault>0"}, {"faults", "oi"}); });
  EXPECT_EQ(text, "there is no figure called 'fault' here (did you mean 'faults'?); known are faults, oi");
  EXPECT_EQ(refusal([] {
              Gate("zebra>0").check({"faults", "oi"});
            }),
            "there is no figure called 'zebra' here; known are faults, oi");
}

TEST(Gate, APercentSignMayBelongToTheName) {
  Figures figures = {{"broken", 3}, {"broken%", 0.5}, {"broken-at-5%", 0.25}};
  EXPECT_TRUE(Gate("broken-at-5%>20%").met(figures));
  EXPECT_TRUE(Gate("broken-at-5%<0.3").met(figures));
  EXPECT_TRUE(Gate("broken>40%").met(figures));
  EXPECT_TRUE(Gate("broken>2").met(figures));
  std::string known = refusal([&] { Gate("brokne>1").check(names_of(figures)); });
  EXPECT_NE(known.find("known are broken, broken-at-5%"), std::string::npos) << known;
}

}  // namespace
}  // namespace galvani
