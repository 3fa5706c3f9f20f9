#include "galvani/mutate/sheet.h"

#include <gtest/gtest.h>

#include <opencv2/imgcodecs.hpp>

#include "galvani/base/files.h"
#include "mutate/testing.h"

namespace galvani {
namespace {

using testing::picture;

Dataset some_data(const ImageShape& shape) {
  Dataset data;
  data.name = "some";
  data.images = at::stack({picture(shape, 1), picture(shape, 2)});
  data.labels = at::zeros({2}, at::kLong);
  return data;
}

TEST(Sheet, ARowForEveryFamily) {
  Dataset data = some_data({1, 28, 28});
  MutatorSet set("rotation,brightness:offset=50..250..50,noise", {SampleType::image(1, 28, 28), data.images});
  std::vector<SheetRow> rows = arrange_mutants(set, data, 6, Rng(1));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].rules.size(), 6U);
  EXPECT_EQ(set.text(rows[0].rules.front()), "rotation:angle=-30");
  EXPECT_EQ(set.text(rows[0].rules.back()), "rotation:angle=29");
  EXPECT_EQ(rows[1].rules.size(), 5U);
  EXPECT_EQ(rows[1].image, 1);
  EXPECT_EQ(rows[2].image, 0);
  // Fifty or a hundred brighter is within 102, more is not.
  EXPECT_EQ(rows[1].valid, (std::vector<bool>{true, true, false, false, false}));
}

TEST(Sheet, ShowsTheMutantsThemselves) {
  TemporaryFolder folder;
  for (ImageShape shape :
       {ImageShape{1, 28, 28}, ImageShape{3, 32, 32}, ImageShape{3, 1, 1}, ImageShape{1, 300, 200}}) {
    Dataset data = some_data(shape);
    MutatorSet set("brightness:offset=100/255", {testing::image_type(shape), data.images});
    write_mutant_sheet(set, data, arrange_mutants(set, data, 4, Rng(1)), folder / "sheet.png");
    cv::Mat page = cv::imread((folder / "sheet.png").string());
    ASSERT_FALSE(page.empty());
    // The last tile is white, the paper is not quite.
    EXPECT_GT(cv::countNonZero(page.reshape(1) == 255), 0) << shape.height;
  }
}

}  // namespace
}  // namespace galvani
