#include "model/fetched/safetensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "galvani/base/error.h"

namespace galvani {
namespace {

std::string safetensors_file(const std::string& header, const std::string& data) {
  std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

std::string tensor_refusal(const std::string& bytes, const std::string& name = "a",
                           const std::vector<std::int64_t>& shape = {2}) {
  try {
    SafeTensors(bytes, "f").get(name, shape);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    return e.what();
  }
  return "nothing was refused";
}

// 1.0 and -2.5 as float16 are 3C00 and C100.
const std::string kTwoHalves("\x00\x3C\x00\xC1", 4);
const char* const kHeaderOfTwo = R"({"__metadata__":{"x":"y"},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";

TEST(SafeTensors, AreReadAsFloats) {
  std::string bytes = safetensors_file(kHeaderOfTwo, kTwoHalves);
  SafeTensors tensors(bytes, "f");
  EXPECT_EQ(tensors.size(), 1U);
  EXPECT_TRUE(tensors.has("a"));
  EXPECT_TRUE(tensors.get("a", {2}).equal(at::tensor({1.0F, -2.5F})));
}

TEST(SafeTensors, ThatLieAreRefused) {
  auto with = [](const std::string& entry) {
    return tensor_refusal(safetensors_file("{\"a\":" + entry + "}", kTwoHalves));
  };
  EXPECT_EQ(tensor_refusal("abc"), "f: is too short for a safetensors file");
  EXPECT_NE(tensor_refusal(safetensors_file(kHeaderOfTwo, kTwoHalves).substr(0, 40)).find("its header is said to be"),
            std::string::npos);
  EXPECT_EQ(tensor_refusal(safetensors_file("[1]", "")), "f: its header is no JSON object");
  EXPECT_NE(tensor_refusal(safetensors_file(kHeaderOfTwo, "\x01")).find("tensor 'a' is larger than the file"),
            std::string::npos);
  EXPECT_NE(with(R"({"dtype":"F16","shape":[2],"data_offsets":[2,6]})").find("the place of tensor 'a'"),
            std::string::npos);
  EXPECT_NE(with(R"({"dtype":"F16","shape":[2],"data_offsets":[4,0]})").find("the place of tensor 'a'"),
            std::string::npos);
  EXPECT_NE(with(R"({"dtype":"F16","shape":[-2],"data_offsets":[0,4]})").find("larger than the file"),
            std::string::npos);
  EXPECT_NE(with(R"({"dtype":"F16","shape":[4611686018427387904,4],"data_offsets":[0,4]})").find("larger"),
            std::string::npos);
  EXPECT_NE(with(R"({"dtype":"C64","shape":[2],"data_offsets":[0,4]})").find("unknown type"), std::string::npos);
  EXPECT_NE(with(R"({"shape":[2]})").find("entry of tensor 'a' is wrong"), std::string::npos);
  EXPECT_EQ(tensor_refusal(safetensors_file(kHeaderOfTwo, kTwoHalves), "b"), "f: holds no tensor 'b'");
  EXPECT_EQ(tensor_refusal(safetensors_file(kHeaderOfTwo, kTwoHalves), "a", {1, 2}),
            "f: tensor 'a' is [2], not [1, 2]");
}

}  // namespace
}  // namespace galvani
