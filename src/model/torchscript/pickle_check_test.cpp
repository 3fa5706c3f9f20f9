#include "model/torchscript/pickle_check.h"

#include <gtest/gtest.h>

#include "galvani/base/error.h"

namespace galvani::torchscript {
namespace {

using namespace std::string_literals;

// Why a pickle between the header and the end is refused; "" if it is not.
std::string refusal(const std::string& body, PickleRoot root = PickleRoot::tuple) {
  auto size = [](const std::string& key) -> std::optional<std::uint64_t> {
    if (key == "0") return 24;
    return std::nullopt;
  };
  try {
    check_pickle("\x80\x02"s + body + ".", root, size, "it");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    return e.what();
  }
  return "";
}

std::string text(const std::string& value) {
  return "X" + std::string(1, static_cast<char>(value.size())) + "\0\0\0"s + value;
}
std::string byte(int value) {
  return "K" + std::string(1, static_cast<char>(value));
}

// A tuple of one float tensor [rows, 3] whose storage claims `items` numbers.
std::string tensor(int items, int rows, const std::string& key = "0") {
  return "(ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text(key) +
         text("cpu") + byte(items) + "tQ" + byte(0) + "(" + byte(rows) + byte(3) + "t(" + byte(3) + byte(1) + "t\x89"s +
         "ccollections\nOrderedDict\n)RtRt";
}

TEST(PickleCheck, AcceptsWhatTorchScriptWrites) {
  EXPECT_EQ(refusal(")"), "");
  EXPECT_EQ(refusal("c__torch__.lenet\nNet\nq\0)\x81}("s + text("training") + "\x89ub", PickleRoot::object), "");
  EXPECT_EQ(refusal("(ctorch.jit._pickle\nbuild_intlist\n](" + byte(1) + byte(2) + "e\x85Rt"), "");
  EXPECT_EQ(refusal(tensor(6, 2)), "");
}

TEST(PickleCheck, RefusesTensorsBeyondTheirData) {
  EXPECT_NE(refusal(tensor(6, 3)), "");       // the shape exceeds the storage
  EXPECT_NE(refusal(tensor(9, 2)), "");       // the storage exceeds the record
  EXPECT_NE(refusal(tensor(6, 2, "1")), "");  // there is no record
}

TEST(PickleCheck, RefusesWhatWouldMisleadTheUnpickler) {
  EXPECT_NE(refusal("t"), "");                    // no mark
  EXPECT_NE(refusal("\x85"), "");                 // empty stack
  EXPECT_NE(refusal(")h\1"s), "");                // nothing remembered
  EXPECT_NE(refusal(")r\xff\xff\xff\x7f"s), "");  // memo of two billion entries
  EXPECT_NE(refusal("]q\0(h\0e\x85"s), "");       // a list inside itself
  EXPECT_NE(refusal("K\0)R"s), "");               // a number called as a function
  EXPECT_NE(refusal("cos\nsystem\n)R"), "");
  EXPECT_NE(refusal("c__torch__.torch.classes.quantized\nConv2dPackedParamsBase\n)\x81)b", PickleRoot::object), "");
  EXPECT_NE(refusal("(ctorch.jit._pickle\nbuild_intlist\n](" + text("a") + "e\x85Rt"), "");
  EXPECT_NE(refusal(")" + std::string(1000, '\x85')), "");  // deep nesting
  EXPECT_NE(refusal(")", PickleRoot::object), "");
  EXPECT_NE(refusal("))"), "");
}

}  // namespace
}  // namespace galvani::torchscript
