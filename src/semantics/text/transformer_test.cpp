#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/semantics/text_encoder.h"

namespace galvani {
namespace {

// Protocol buffers by hand: a proto_field is a whole number or the bytes of a text or message.
std::string proto_number(std::uint64_t n) {
  std::string bytes;
  for (; n > 127; n >>= 7) bytes += static_cast<char>((n & 127) | 128);
  return bytes + static_cast<char>(n);
}
std::string proto_field(int number, std::uint64_t value) {
  return proto_number(static_cast<std::uint64_t>(number) << 3) + proto_number(value);
}
std::string proto_field(int number, const std::string& bytes) {
  return proto_number((static_cast<std::uint64_t>(number) << 3) | 2) + proto_number(bytes.size()) + bytes;
}

// [1, T] whole numbers; T < 0: open.
std::string ids_port(const std::string& name, std::int64_t length) {
  std::string one = proto_field(1, proto_field(1, 1));
  std::string tokens = length < 0 ? proto_field(1, proto_field(2, "T"))
                                  : proto_field(1, proto_field(1, static_cast<std::uint64_t>(length)));
  return proto_field(1, name) + proto_field(2, proto_field(1, proto_field(1, 7) + proto_field(2, one + tokens)));
}
std::string any_port(const std::string& name) {
  return proto_field(1, name) + proto_field(2, proto_field(1, proto_field(1, 1)));
}

// Row i of a table for token i, "last_hidden_state" [1, T, 2]; the table is (1, 0), (0, 1), (3, 4), (-2, 0).
std::string table_model(std::int64_t length, const std::string& more_inputs = "") {
  const float table[] = {1, 0, 0, 1, 3, 4, -2, 0};
  std::string raw(sizeof table, '\0');
  std::memcpy(raw.data(), table, sizeof table);
  std::string tensor =
      proto_field(1, 4) + proto_field(1, 2) + proto_field(2, 1) + proto_field(8, "table") + proto_field(9, raw);
  std::string node = proto_field(1, "table") + proto_field(1, "input_ids") + proto_field(2, "last_hidden_state") +
                     proto_field(4, "Gather");
  std::string graph = proto_field(1, node) + proto_field(2, "g") + proto_field(5, tensor) +
                      proto_field(11, ids_port("input_ids", length)) + more_inputs +
                      proto_field(12, any_port("last_hidden_state"));
  return proto_field(1, 8) + proto_field(7, graph) + proto_field(8, proto_field(2, 13));
}

class TransformerTest : public ::testing::Test {
 protected:
  TransformerTest() {
    // Tokens: <s> 0, </s> 1, a 2, b 3, in RoBERTa's way.
    write_file(folder_ / "vocab.json", R"({"<s>":0,"</s>":1,"a":2,"b":3})");
    write_file(folder_ / "merges.txt", "a b\n");
    write_file(folder_ / "m.onnx", table_model(-1));
  }
  std::string spec(const std::string& model, const std::string& more = "") const {
    return "onnx:model=" + (folder_ / model).string() + ",tokenizer=" + (folder_ / "vocab.json").string() + more;
  }
  at::Tensor row(const std::string& spec, const std::string& text) const {
    return make_text_encoder(Spec::parse(spec))->encode({text})[0];
  }
  std::string refused(const std::string& spec, ErrorCode code = ErrorCode::bad_input) const {
    try {
      make_text_encoder(Spec::parse(spec));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    return "nothing was refused";
  }
  static void expect_direction(const at::Tensor& row, double x, double y) {
    EXPECT_NEAR(row[0].item<double>(), x / std::hypot(x, y), 1e-6);
    EXPECT_NEAR(row[1].item<double>(), y / std::hypot(x, y), 1e-6);
  }
  TemporaryFolder folder_;
};

TEST_F(TransformerTest, PoolsTokensAsAsked) {
  // "ba": <s> b a </s> = (1, 0), (-2, 0), (3, 4), (0, 1).
  expect_direction(row(spec("m.onnx"), "ba"), 0.5, 1.25);
  expect_direction(row(spec("m.onnx", ",pooling=first"), "ba"), 1, 0);
  expect_direction(row(spec("m.onnx", ",pooling=last"), "ba"), 0, 1);
  expect_direction(row(spec("m.onnx", ",pooling=max"), "ba"), 3, 4);
  expect_direction(row(spec("m.onnx", ",max-length=3"), "ba"), -1, 1);
}

TEST_F(TransformerTest, AnEmptyPlaceDoesNotCount) {
  write_file(folder_ / "fixed.onnx", table_model(8));
  expect_direction(row(spec("fixed.onnx"), "ba"), 0.5, 1.25);
  write_file(folder_ / "short.onnx", table_model(3));
  expect_direction(row(spec("short.onnx"), "ba"), -1, 1);  // cut to <s> b </s>
}

TEST_F(TransformerTest, IsTheSameWhateverIsBesideIt) {
  auto encoder = make_text_encoder(Spec::parse(spec("m.onnx")));
  at::Tensor together = encoder->encode({"a", "b", "aabb", "ba"});
  for (const char* text : {"ba", "aabb"}) {
    at::Tensor alone = row(spec("m.onnx"), text);
    EXPECT_TRUE(alone.equal(together[text == std::string("ba") ? 3 : 2]));
  }
  EXPECT_EQ(encoder->files_sha256().size(), 3U);
}

TEST_F(TransformerTest, SaysWhatIsWrong) {
  EXPECT_NE(refused("onnx", ErrorCode::usage).find("onnx:model=encoder.onnx,tokenizer=tokenizer.json"),
            std::string::npos);
  EXPECT_NE(refused(spec("none.onnx")).find("none.onnx"), std::string::npos);
  EXPECT_NE(refused(spec("m.onnx", ",output=pooled")).find("has no output 'pooled'; it has last_hidden_state"),
            std::string::npos);
  std::string whole = table_model(-1);
  write_file(folder_ / "cut.onnx", whole.substr(0, whole.size() / 2));
  EXPECT_NE(refused(spec("cut.onnx")).find("cut.onnx"), std::string::npos);
  write_file(folder_ / "odd.onnx", table_model(-1, proto_field(11, ids_port("past_key_values.0.key", -1))));
  EXPECT_NE(refused(spec("odd.onnx")).find("its input 'past_key_values.0.key' is nothing that a text gives"),
            std::string::npos);
  // A tokenizer of another network names rows that the table does not have.
  write_file(folder_ / "vocab.json", R"({"<s>":0,"</s>":1,"a":9,"b":3})");
  EXPECT_NE(refused(spec("m.onnx")).find("m.onnx: fails while running"), std::string::npos);
}

TEST_F(TransformerTest, SurvivesDamagedModels) {
  std::string whole = table_model(-1);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x15);
    write_file(folder_ / "changed.onnx", changed);
    try {
      row(spec("changed.onnx"), "ab");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input) << e.what();
    }
  }
}

}  // namespace
}  // namespace galvani
