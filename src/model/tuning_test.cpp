// The choice of micro-batch and layout that is remembered.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "galvani/base/files.h"
#include "galvani/model/network.h"
#include "galvani/model/zoo.h"
#include "model/testing.h"

namespace galvani {
namespace {

using nlohmann::json;

class Tuning : public ::testing::Test {
 protected:
  static std::int64_t chosen() {
    Rng rng(1);
    auto network = Network::from_onnx(
        architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng), "lenet1", {});
    return network->execution().micro_batch;
  }
  json record() const { return json::parse(read_file(cache_ / "tuning.json", 1 << 20)); }
  void write(const json& record) const { write_file(cache_ / "tuning.json", record.dump()); }

  testing::OwnCache cache_;
};

TEST_F(Tuning, IsRememberedUnlessItWasMeasuredInAnotherWay) {
  chosen();
  json measured = record();
  ASSERT_EQ(measured["choices"].size(), 1U);
  std::string key = measured["choices"].begin().key();
  // No measurement gives three.
  json three = {{"micro_batch", 3}, {"channels_last", false}, {"fused", false}};
  json told = measured;
  told["choices"][key] = three;
  write(told);
  EXPECT_EQ(chosen(), 3);
  // Other versions: a number of their own, or none and the choices at the top.
  told["version"] = measured["version"].get<int>() - 1;
  write(told);
  EXPECT_NE(chosen(), 3);
  EXPECT_EQ(record()["version"], measured["version"]);
  write({{key, three}});
  EXPECT_NE(chosen(), 3);
  for (const char* broken : {"", "[]", R"({"version": 2})", R"({"version": 2, "choices": 7})"}) {
    write_file(cache_ / "tuning.json", broken);
    EXPECT_NE(chosen(), 3) << broken;
  }
}

}  // namespace
}  // namespace galvani
