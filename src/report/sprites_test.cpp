#include "report/sprites.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "galvani/data/image.h"

namespace galvani {
namespace {

// RFC 4648, section 10.
TEST(Base64, RfcVectors) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(Tiles, SmallImagesKeepTheirSizeLargeOnesAreReduced) {
  EXPECT_EQ(tile_of(28, 28).width, 28);
  Tile tile = tile_of(100, 200);
  EXPECT_EQ(tile.width, 64);
  EXPECT_EQ(tile.height, 32);
  EXPECT_EQ(tile_of(1, 4000).height, 1);
}

std::string unbase64(const std::string& text) {
  static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned held = 0;
  int bits = 0;
  for (char c : text) {
    if (c == '=') break;
    held = held << 6 | static_cast<unsigned>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits & 255U);
  }
  return bytes;
}

TEST(Sheets, TilesLieWhereThePageLooksForThem) {
  for (std::int64_t channels : {1, 3}) {
    SheetMaker maker(tile_of(3, 2), channels);
    at::Tensor images = at::randint(256, {kTilesInSheet + 21, channels, 3, 2}, at::kByte);
    for (std::int64_t i = 0; i < images.size(0); ++i) EXPECT_EQ(maker.add(images[i]), i);
    std::vector<std::string> sheets = maker.finish();
    ASSERT_EQ(sheets.size(), 2U);
    for (std::int64_t i : {0, 1, 19, 20, kTilesInSheet - 1, kTilesInSheet, kTilesInSheet + 20}) {
      at::Tensor sheet =
          decode_image_tensor(unbase64(sheets[static_cast<std::size_t>(i / kTilesInSheet)]), "the sheet");
      std::int64_t at = i % kTilesInSheet;
      at::Tensor tile = sheet.narrow(1, at / kSheetColumns * 3, 3).narrow(2, at % kSheetColumns * 2, 2);
      EXPECT_TRUE(at::equal(tile, images[i])) << i;
    }
  }
}

}  // namespace
}  // namespace galvani
