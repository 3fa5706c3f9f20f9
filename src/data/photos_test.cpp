// Image files as people have them: any size and kind, made into what a model takes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <opencv2/imgcodecs.hpp>

#include "fit_image.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/export.h"
#include "galvani/data/view.h"
#include "image_file.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;
using Resize = Intake::Resize;

std::string refused_photos(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

std::string encoded(const char* extension, const cv::Mat& image) {
  std::vector<unsigned char> bytes;
  EXPECT_TRUE(cv::imencode(extension, image, bytes));
  return {bytes.begin(), bytes.end()};
}

cv::Mat filled(int width, int height, int type, const cv::Scalar& value) {
  return {height, width, type, value};
}

// A TIFF directory with an orientation, as EXIF has it.
std::string exif_of(int orientation) {
  return std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + static_cast<char>(orientation) +
         std::string("\0\0\0\0\0\0\0", 7);
}

std::string with_exif(const std::string& jpeg, int orientation) {
  std::string exif = std::string("Exif\0\0", 6) + exif_of(orientation);
  return jpeg.substr(0, 2) + "\xff\xe1" + std::string(1, '\0') + static_cast<char>(exif.size() + 2) + exif +
         jpeg.substr(2);
}

std::string number_bytes(std::uint64_t value, int size, bool big) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * (big ? size - 1 - i : i));
  return bytes;
}

// The start of a gray TIFF whose sides are numbers of this type and size. One of eight bytes lies elsewhere; where it
// lies is a small number, which must not pass for it.
std::string tiff_with_sides(int type, int size, std::uint64_t width, std::uint64_t height, bool big) {
  auto number = [&](std::uint64_t value, int bytes) { return number_bytes(value, bytes, big); };
  constexpr int kEntries = 2, kFirst = 8, kAfter = kFirst + 2 + kEntries * 12 + 4;
  std::string file =
      (big ? std::string("MM\0*", 4) : std::string("II*\0", 4)) + number(kFirst, 4) + number(kEntries, 2);
  std::string elsewhere;
  for (auto [tag, value] : {std::pair{256, width}, {257, height}}) {
    file += number(static_cast<std::uint64_t>(tag), 2) + number(static_cast<std::uint64_t>(type), 2) + number(1, 4);
    std::string inside = number(value, size);
    if (size > 4) {
      inside = number(kAfter + elsewhere.size(), 4);
      elsewhere += number(value, size);
    }
    file += inside + std::string(4 - inside.size(), '\0');
  }
  return file + std::string(4, '\0') + elsewhere;
}

Image made(std::int64_t channels, std::int64_t height, std::int64_t width, std::string pixels, int orientation = 1) {
  return {channels, height, width, orientation, std::move(pixels)};
}

std::vector<int> fitted_bytes(const Image& image, const Intake& intake, const std::vector<std::int64_t>& shape) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]), 99);
  fit_image(image, intake, shape, out.data(), "x");
  return {out.begin(), out.end()};
}

InputNeeds needs_of(std::vector<std::int64_t> shape, Intake intake = {}) {
  InputNeeds needs;
  needs.shape = std::move(shape);
  needs.intake = intake;
  return needs;
}

TEST(Photos, SidesOfATiffAreReadWhateverTheirType) {
  for (bool big : {false, true}) {
    for (auto [type, size] : {std::pair{1, 1}, {3, 2}, {4, 4}, {16, 8}, {17, 8}}) {
      ImageInfo info = read_image_header(tiff_with_sides(type, size, 200, 100, big), "x.tiff");
      EXPECT_EQ(std::pair(info.width, info.height), std::pair(std::int64_t{200}, std::int64_t{100})) << type;
    }
    for (std::uint64_t side : {std::uint64_t{1} << 20, std::uint64_t{1} << 32, std::uint64_t{1} << 63}) {
      std::string said = refused_photos([&] { read_image_header(tiff_with_sides(16, 8, side, side, big), "x.tiff"); });
      EXPECT_NE(said.find("more than the 128 million accepted"), std::string::npos) << said;
    }
    std::string said = refused_photos([&] { read_image_header(tiff_with_sides(5, 8, 8, 8, big), "x.tiff"); });
    EXPECT_EQ(said, "x.tiff: its TIFF header gives a whole number as type 5");
  }
}

TEST(Photos, ResizesByEveryRule) {
  // Columns of 0, 10, ..., 70; two rows.
  std::string row = {0, 10, 20, 30, 40, 50, 60, 70};
  Image wide = made(1, 4, 8, row + row + row + row);
  std::vector<std::int64_t> shape = {1, 4, 4};
  std::vector<int> cut = {20, 30, 40, 50, 20, 30, 40, 50, 20, 30, 40, 50, 20, 30, 40, 50};
  std::vector<int> squeezed = {5, 25, 45, 65, 5, 25, 45, 65, 5, 25, 45, 65, 5, 25, 45, 65};
  std::vector<int> padded = {0, 0, 0, 0, 5, 25, 45, 65, 5, 25, 45, 65, 0, 0, 0, 0};
  EXPECT_EQ(fitted_bytes(wide, {}, shape), cut);
  EXPECT_EQ(fitted_bytes(wide, {Resize::fit}, shape), cut);
  EXPECT_EQ(fitted_bytes(wide, {Resize::short_side, 4, 4}, shape), cut);
  EXPECT_EQ(fitted_bytes(wide, {Resize::automatic, 0, 4}, shape), cut);
  EXPECT_EQ(fitted_bytes(wide, {Resize::exact}, shape), squeezed);
  EXPECT_EQ(fitted_bytes(wide, {Resize::pad}, shape), padded);
  // Halved, then the centre: columns 1 and 2 of 5, 25, 45, 65.
  EXPECT_EQ(fitted_bytes(wide, {Resize::short_side, 2, 2}, {1, 2, 2}), (std::vector<int>{25, 45, 25, 45}));
  // Twice as large, linearly: quarter and three-quarter points between pixels.
  EXPECT_EQ(fitted_bytes(made(1, 1, 2, {0, 100}), {Resize::exact}, {1, 1, 4}), (std::vector<int>{0, 25, 75, 100}));
  EXPECT_NE(refused_photos([&] {
              fitted_bytes(wide, {Resize::automatic, 0, 6}, {1, 6, 6});
            }).find("too small to cut"),
            std::string::npos);
}

TEST(Photos, TurnsAsExifSays) {
  std::string pixels = {1, 2, 3, 4, 5, 6};
  // Worked out by hand from the standard's table.
  std::vector<std::vector<int>> upright = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                           {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                           {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    std::vector<std::int64_t> shape = {1, 2, 3};
    if (orientation >= 5) shape = {1, 3, 2};
    EXPECT_EQ(fitted_bytes(made(1, 2, 3, pixels, orientation), {Resize::fit}, shape),
              upright[static_cast<std::size_t>(orientation - 1)])
        << orientation;
  }
  // What already has the size stays as it is stored unless something was asked for.
  EXPECT_EQ(fitted_bytes(made(1, 2, 3, pixels, 3), {}, {1, 2, 3}), upright[0]);
}

TEST(Photos, ChangesChannels) {
  EXPECT_EQ(fitted_bytes(made(1, 1, 2, {7, 9}), {}, {3, 1, 2}), (std::vector<int>{7, 9, 7, 9, 7, 9}));
  // 0.299 of red.
  EXPECT_EQ(fitted_bytes(made(3, 1, 1, {'\xff', 0, 0}), {}, {1, 1, 1}), (std::vector<int>{76}));
}

TEST(Photos, ReadsHeaders) {
  cv::Mat colour = filled(30, 20, CV_8UC3, {10, 20, 30});
  for (const char* extension : {".png", ".jpg", ".webp", ".tiff", ".bmp", ".ppm"}) {
    ImageInfo info = read_image_header(encoded(extension, colour), extension);
    EXPECT_EQ(info.width, 30) << extension;
    EXPECT_EQ(info.height, 20) << extension;
    EXPECT_EQ(info.channels, 3) << extension;
    EXPECT_EQ(info.orientation, 1) << extension;
  }
  for (const char* extension : {".png", ".jpg", ".tiff", ".pgm"})
    EXPECT_EQ(read_image_header(encoded(extension, filled(3, 2, CV_8UC1, 9)), extension).channels, 1) << extension;
  std::string jpeg = encoded(".jpg", colour);
  for (int orientation = 1; orientation <= 8; ++orientation)
    EXPECT_EQ(read_image_header(with_exif(jpeg, orientation), "x").orientation, orientation);
  EXPECT_EQ(read_image_header(with_exif(jpeg, 77), "x").orientation, 1);
  std::string png = encoded(".png", colour);
  std::string exif = exif_of(6);
  std::string chunk = std::string("\0\0\0", 3) + static_cast<char>(exif.size()) + "eXIf" + exif + "crc.";
  EXPECT_EQ(read_image_header(png.substr(0, 33) + chunk + png.substr(33), "x").orientation, 6);
  std::string webp = encoded(".webp", colour);
  EXPECT_NE(refused_photos([&] { read_image_header("II*", "x"); }).find("is not a PNG"), std::string::npos);
  EXPECT_NE(
      refused_photos([&] { read_image_header(std::string("II*\0\xff\xff\xff\x7f", 8), "x"); }).find("ends inside"),
      std::string::npos);
  QuietDecoders quiet;
  EXPECT_NE(refused_photos([&] { decode_image(webp.substr(0, webp.size() - 5), "x"); }).find("ends early"),
            std::string::npos);
  cv::Mat deep = filled(3, 2, CV_16UC1, 514);
  for (const char* extension : {".png", ".tiff"}) {
    Image image = decode_image(encoded(extension, deep), "x");
    EXPECT_EQ(image.pixels, std::string(6, 2)) << extension;
  }
  Image alpha = decode_image(encoded(".png", filled(2, 2, CV_8UC4, {1, 2, 3, 128})), "x");
  EXPECT_EQ(alpha.pixels, (std::string{3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1}));
}

TEST(Photos, MixedFolder) {
  TemporaryFolder folder;
  fs::create_directories(folder / "photos");
  fs::path photos = folder / "photos";
  write_file(photos / "a.png", encoded(".png", filled(60, 40, CV_8UC3, {0, 0, 200})));
  write_file(photos / "b.jpg", with_exif(encoded(".jpg", filled(50, 30, CV_8UC1, 100)), 6));
  write_file(photos / "c.webp", encoded(".webp", filled(16, 16, CV_8UC3, {90, 90, 90})));
  write_file(photos / "d.tif", encoded(".tif", filled(8, 8, CV_16UC3, {257 * 5, 257 * 6, 257 * 7})));
  write_file(photos / "grün.bmp", encoded(".bmp", filled(4, 9, CV_8UC3, {0, 255, 0})));
  OpenedData opened(photos.string());
  DataView view = opened.view(needs_of({3, 8, 8}));
  EXPECT_EQ(view.files, (std::vector<std::string>{"a.png", "b.jpg", "c.webp", "d.tif", "grün.bmp"}));
  at::Tensor images = view.fetch(0, 5);
  EXPECT_EQ(images.sizes(), at::IntArrayRef({5, 3, 8, 8}));
  auto pixel = [&](int row) { return images[row].select(1, 4).select(1, 4); };
  EXPECT_TRUE(pixel(0).equal(at::tensor({200, 0, 0}, at::kByte)));
  EXPECT_TRUE(pixel(1).equal(at::tensor({100, 100, 100}, at::kByte)));
  EXPECT_TRUE(pixel(3).equal(at::tensor({7, 6, 5}, at::kByte)));
  EXPECT_TRUE(pixel(4).equal(at::tensor({0, 255, 0}, at::kByte)));
  // One by one it is the same, and in memory.
  EXPECT_TRUE(view.fetch({3, 1}).equal(images.index_select(0, at::tensor({3, 1}))));
  EXPECT_EQ(view.load().subset({4, 0}).files, (std::vector<std::string>{"grün.bmp", "a.png"}));
  EXPECT_EQ(opened.view(needs_of({1, 8, 8})).fetch(0, 5).size(1), 1);
  std::string joined = photos.string() + "+digits[:2]";
  DataView both = OpenedData(joined).view(needs_of({1, 28, 28}));
  EXPECT_EQ(both.size(), 7);
  EXPECT_EQ(both.file(0), "a.png");
  EXPECT_EQ(both.file(6), "");
  EXPECT_EQ(opened.sizes().size(), 5U);
  EXPECT_FALSE(opened.common_type()) << "no size that a model could be thought to take";
  EXPECT_NE(refused_photos([&] { opened.view().fetch(0, 5); }).find("differ in size"), std::string::npos);
  EXPECT_NE(refused_photos([&] {
              opened.view(needs_of({3, 8, 8}, {Resize::short_side, 9, 7}));
            }).find("7x7"),
            std::string::npos);
  EXPECT_NE(refused_photos([&] {
              opened.view(needs_of({3, 8, 8}, {Resize::short_side, 7}));
            }).find("gives less than"),
            std::string::npos);
}

TEST(Photos, WhatFitsIsLeftAlone) {
  TemporaryFolder folder;
  Dataset data;
  data.name = "noise";
  data.images = at::randint(0, 256, {6, 3, 8, 8}, at::kByte);
  data.labels = at::zeros({6}, at::kLong);
  write_sample_folder(data, folder / "x");
  OpenedData opened((folder / "x").string());
  EXPECT_EQ(opened.common_type(), SampleType::image(3, 8, 8));
  std::string plain = content_hash(opened.view());
  EXPECT_EQ(plain, content_hash(data));
  EXPECT_EQ(content_hash(opened.view(needs_of({3, 8, 8}))), plain);
  EXPECT_EQ(content_hash(opened.view(needs_of({3, 8, 8}, {Resize::short_side, 10, 8}))), plain);
  EXPECT_NE(content_hash(opened.view(needs_of({3, 7, 7}))), plain);
  OpenedData digits("digits[:3]");
  EXPECT_EQ(content_hash(digits.view(needs_of({1, 28, 28}))), content_hash(digits.view()));
  EXPECT_EQ(digits.view(needs_of({3, 32, 32})).type(), SampleType::image(1, 28, 28));
  EXPECT_EQ(digits.view(needs_of({3, 32, 32}, {Resize::fit})).fetch(0, 3).sizes(), at::IntArrayRef({3, 3, 32, 32}));
}

TEST(Photos, CountsBrokenFiles) {
  TemporaryFolder folder;
  fs::create_directories(folder / "p");
  std::string good = encoded(".png", filled(40, 40, CV_8UC3, {1, 2, 3}));
  write_file(folder / "p" / "b.png", good);
  write_file(folder / "p" / "c.png", good.substr(0, good.size() / 2));
  OpenedData one((folder / "p").string());
  EXPECT_NE(refused_photos([&] { one.view(); }).find("c.png: the PNG data ends early; --skip-broken leaves it out"),
            std::string::npos);
  write_file(folder / "p" / "a.jpg", "");
  write_file(folder / "p" / "d.webp", "hello");
  write_file(folder / "p" / "e.bmp", "BM");
  OpenedData opened((folder / "p").string());
  EXPECT_EQ(opened.type(), SampleType::image(3, 40, 40));
  std::string message = refused_photos([&] { opened.view(needs_of({3, 8, 8})); });
  EXPECT_NE(message.find("4 of 5 files are broken: a.jpg, c.png, d.webp, ..."), std::string::npos) << message;
  InputNeeds skipping = needs_of({3, 8, 8});
  skipping.intake.skip_broken = true;
  DataView view = opened.view(skipping);
  EXPECT_EQ(view.files, std::vector<std::string>{"b.png"});
  // Damage that no header shows is found when files are to be left out.
  std::string damaged = encoded(".png", filled(40, 40, CV_8UC3, {1, 2, 3}));
  damaged[damaged.find("IDAT") + 6] ^= 0x55;
  write_file(folder / "p" / "f.png", damaged);
  EXPECT_EQ(OpenedData((folder / "p").string()).view(skipping).size(), 1);
  fs::remove(folder / "p" / "b.png");
  EXPECT_NE(refused_photos([&] { OpenedData((folder / "p").string()).view(skipping); }).find("all 5 files are broken"),
            std::string::npos);
}

}  // namespace
}  // namespace galvani
