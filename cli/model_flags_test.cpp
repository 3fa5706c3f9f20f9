#include "model_flags.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/base/files.h"
#include "galvani/data/image.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/zoo.h"

namespace galvani::cli {
namespace {

class LoadWithData : public ::testing::Test {
 protected:
  LoadWithData() {
    Rng rng(1);
    Network::Options options;
    options.execution = {1, false};
    Network::from_onnx(architectures().create(Spec::parse("lenet1"), ArchitectureShape{1, 28, 28, 10}, rng), "m",
                       options)
        ->save(folder_ / "m.onnx");
    flags_.model = (folder_ / "m.onnx").string();
    flags_.options.execution = {1, false};
  }

  // A folder with an image of each of so many classes.
  std::string classes(int count) const {
    std::string name = "of-" + std::to_string(count);
    for (int c = 0; c < count; ++c) {
      std::filesystem::path place = folder_ / name / std::string(1, static_cast<char>('a' + c));
      std::filesystem::create_directories(place);
      write_file(place / "x.png", encode_png(at::full({1, 28, 28}, 10 * c, at::kByte)));
    }
    return (folder_ / name).string();
  }

  TemporaryFolder folder_;
  ModelFlags flags_;
};

TEST_F(LoadWithData, NamesOfTheDataAreThoseOfANetworkThatHasNone) {
  ModelAndData loaded = load_with_data(flags_, classes(10), "test", /*with_labels=*/false);
  EXPECT_FALSE(loaded.data.labelled());
  EXPECT_EQ(verdict_name(*loaded.network, loaded.data, 3), "d");
  // Of another number of classes they are names of something else.
  loaded = load_with_data(flags_, classes(9), "test", /*with_labels=*/false);
  EXPECT_EQ(verdict_name(*loaded.network, loaded.data, 3), "3");
}

}  // namespace
}  // namespace galvani::cli
