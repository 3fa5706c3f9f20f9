#include <gtest/gtest.h>

#include <set>

#include "galvani/base/files.h"
#include "galvani/model/fetched.h"
#include "model/testing.h"

namespace galvani {
namespace {

class FetchedModels : public ::testing::Test {
 protected:
  testing::OwnCache cache_;
  TemporaryFolder folder_;
};

TEST_F(FetchedModels, HaveNamesSizesAndChecksums) {
  std::set<std::string> names;
  for (const FetchedModel& model : fetched_models()) {
    EXPECT_TRUE(names.insert(model.name).second);
    EXPECT_EQ(model.sha256.size(), 64U);
    EXPECT_GT(model.bytes, 1000000U);
    EXPECT_FALSE(model.licence.empty());
    EXPECT_FALSE(fetched_folder(model));
  }
  EXPECT_EQ(testing::error_of([] { fetched_model("minlm"); }),
            "there is no model called 'minlm'; did you mean 'minilm'?");
  EXPECT_EQ(testing::error_of([] { fetched_model("something-else"); }),
            "there is no model called 'something-else'; galvani model list shows those there are");
  EXPECT_EQ(testing::error_of([] { require_fetched(fetched_model("glove")); }),
            "glove has not been fetched yet: galvani model get glove");
}

TEST_F(FetchedModels, AnotherArchiveIsRefusedAndLeavesNothing) {
  write_file(folder_ / "other.tgz", "not it");
  const FetchedModel& model = fetched_model("minilm");
  EXPECT_NE(testing::error_of([&] { get_model(model, folder_ / "other.tgz"); }).find("its checksum differs"),
            std::string::npos);
  EXPECT_NE(testing::error_of([&] { get_model(model, folder_ / "none.tgz"); }).find("there is no such file"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(cache_ / "models"));
}

TEST_F(FetchedModels, WhatAnotherVersionMadeIsMadeAgain) {
  const FetchedModel& model = fetched_model("glove");
  std::filesystem::path made = cache_ / "models" / "glove";
  std::filesystem::create_directories(made);
  write_file(made / model.main, "vectors");
  auto record = [&](const std::string& conversion, const std::string& sha) {
    write_file(made / "origin.json", R"({"conversion": )" + conversion + R"(, "package_sha256": ")" + sha + "\"}");
    return fetched_folder(model).has_value();
  };
  EXPECT_TRUE(record("1", model.sha256));
  EXPECT_FALSE(record("0", model.sha256));
  EXPECT_FALSE(record("1", "other"));
  EXPECT_FALSE(record("{", ""));
  EXPECT_TRUE(record("1", model.sha256));
  std::filesystem::remove(made / model.main);
  EXPECT_FALSE(fetched_folder(model));
}

}  // namespace
}  // namespace galvani
