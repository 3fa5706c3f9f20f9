// Every format: what is written comes back, and what is damaged is refused with a sentence.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/catalogue.h"
#include "galvani/data/dataset.h"
#include "galvani/data/export.h"
#include "galvani/data/npy.h"
#include "galvani/data/sheet.h"
#include "image_file.h"
#include "unpack.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

Dataset random_data(std::int64_t n, std::int64_t channels, std::int64_t height = 8, std::int64_t width = 6) {
  Dataset data;
  data.name = "random";
  data.images = at::randint(0, 256, {n, channels, height, width}, at::kByte);
  data.labels = at::arange(n, at::kLong).remainder(3);
  data.class_names = {"zebra", "ant, \"red\"", "7"};
  return data;
}

void expect_same(const Dataset& a, const Dataset& b, bool with_names) {
  EXPECT_TRUE(a.images.equal(b.images));
  EXPECT_TRUE(a.labels.equal(b.labels));
  if (with_names) {
    EXPECT_EQ(a.class_names, b.class_names);
  }
}

void expect_error(const std::function<void()>& action, const std::string& message,
                  ErrorCode code = ErrorCode::bad_input) {
  try {
    action();
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
  }
}

void expect_load_error(const fs::path& path, const std::string& message) {
  expect_error([&] { load_data(path.string()); }, message);
}

std::string gzip(const fs::path& path) {
  std::string command = "gzip -k -f '" + path.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return path.string() + ".gz";
}

std::string png(std::int64_t channels, std::int64_t height, std::int64_t width) {
  std::string pixels(static_cast<std::size_t>(channels * height * width), '\x40');
  return encode_png(reinterpret_cast<const unsigned char*>(pixels.data()), channels, height, width);
}

TEST(Formats, RoundTrips) {
  for (std::int64_t channels : {1, 3}) {
    TemporaryFolder folder;
    Dataset data = random_data(11, channels);
    write_sample_folder(data, folder / "images");
    expect_same(load_data(folder / "images"), data, true);
    expect_same(load_data((folder / "images").string() + "[2:5]"), data.subset({2, 3, 4}), true);
    write_npz_dataset(data, folder / "a.npz");
    expect_same(load_data(folder / "a.npz"), data, false);
    write_idx(data, folder / "idx", "t10k");
    expect_same(load_data(folder / "idx"), data, false);
    expect_same(load_data((folder / "idx").string() + ":test[3:9:2]"), data.subset({3, 5, 7}), false);
    expect_load_error((folder / "idx").string() + ":train", "has no train split");
  }
}

TEST(Formats, AFolderInTheMakingIsNotTakenForAWholeOne) {
  TemporaryFolder folder;
  Dataset data = random_data(5, 1);
  fs::path work;
  auto finished = [&](bool fails) {
    write_sample_folder(data, folder / "out", [&](const fs::path& place) {
      work = place;
      EXPECT_FALSE(fs::exists(folder / "out"));
      EXPECT_EQ(place.filename().string().rfind("out.incomplete-", 0), 0U) << place;
      EXPECT_FALSE(fs::exists(place / "labels.csv"));
      expect_load_error(place, "did not come to its end");
      write_file(place / "more.csv", "x");
      if (fails) fail(ErrorCode::interrupted, "interrupted");
    });
  };
  expect_error([&] { finished(true); }, "interrupted", ErrorCode::interrupted);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  finished(false);
  EXPECT_FALSE(fs::exists(work));
  EXPECT_TRUE(fs::exists(folder / "out/more.csv") && !fs::exists(folder / "out/INCOMPLETE"));
  EXPECT_EQ(load_data(folder / "out").size(), 5);
}

TEST(Formats, AnEmptyFolderIsFilledAsItIs) {
  TemporaryFolder folder;
  fs::create_directories(folder / "out");
  fs::create_symlink("out", folder / "link");
  Dataset data = random_data(5, 1);
  write_sample_folder(data, folder / "link",
                      [&](const fs::path& place) { expect_load_error(place, "did not come to its end"); });
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(load_data(folder / "out").size(), 5);
}

TEST(Formats, HostileClassNamesComeBack) {
  TemporaryFolder folder;
  Dataset data = random_data(6, 1);
  data.class_names = {"=cmd|' /C calc'!A0", "'=\x1b[31m", "two\nlines"};
  write_sample_folder(data, folder / "images");
  std::string table = read_file(folder / "images/labels.csv");
  EXPECT_NE(table.find("\n000000.png,'=cmd"), std::string::npos) << table;
  Dataset back = load_data(folder / "images");
  data.class_names[2] = "two?lines";
  expect_same(back, data, true);
}

TEST(Formats, AnEmptyFolderBehindALinkIsFilled) {
  TemporaryFolder folder;
  fs::create_directory(folder / "real");
  fs::create_symlink("real", folder / "link");
  write_sample_folder(random_data(2, 1), folder / "link");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::exists(folder / "real/labels.csv"));
}

TEST(Formats, UnlabelledStaysUnlabelled) {
  TemporaryFolder folder;
  Dataset data = random_data(4, 1);
  data.labels.fill_(Dataset::kUnlabelled);
  write_npz_dataset(data, folder / "a.npz");
  write_idx(data, folder / "idx", "t10k");
  write_sample_folder(data, folder / "images");
  for (const char* name : {"a.npz", "idx", "images"}) {
    Dataset back = load_data(folder / name);
    expect_same(back, data, false);
    EXPECT_FALSE(back.labelled());
  }
}

TEST(Formats, GzippedIdx) {
  TemporaryFolder folder;
  Dataset data = random_data(5, 1);
  write_idx(data, folder.path(), "t10k");
  for (const char* name : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    gzip(folder / name);
    fs::remove(folder / name);
  }
  expect_same(load_data(folder.path()), data, false);
  expect_same(load_data(folder / "t10k-images-idx3-ubyte.gz"), data, false);
}

TEST(Formats, Cifar) {
  TemporaryFolder folder;
  Dataset data = random_data(4, 3, 32, 32);
  data.class_names.clear();
  for (int label_bytes : {1, 2}) {
    std::string records;
    for (std::int64_t i = 0; i < 4; ++i) {
      if (label_bytes == 2) records += '\x05';
      records += static_cast<char>(data.labels[i].item<std::int64_t>());
      records.append(static_cast<const char*>(data.images[i].data_ptr()), 3072);
    }
    write_file(folder / (label_bytes == 1 ? "test_batch.bin" : "odd.bin"), records);
  }
  expect_same(load_data(folder.path()), data, false);
  expect_same(load_data(folder / "odd.bin"), data, false);
  EXPECT_EQ(load_data(folder.path()).class_name(2), "bird");
  expect_same(load_data((folder / "test_batch.bin").string() + "[1:3]"), data.subset({1, 2}), false);
  std::string bytes = read_file(folder / "test_batch.bin");
  bytes[0] = 10;
  write_file(folder / "test_batch.bin", bytes);
  expect_load_error(folder.path(), "record 0 has label 10");
  write_file(folder / "test_batch.bin", bytes.substr(1));
  expect_load_error(folder.path(), "no multiple");
}

TEST(Formats, FolderPerClass) {
  TemporaryFolder folder;
  for (const char* name : {"dog", "cat"}) {
    fs::create_directories(folder / "train" / name);
    for (const char* file : {"b.png", "a.PNG"}) write_file(folder / "train" / name / file, png(3, 4, 5));
    write_file(folder / "train" / name / "notes.txt", "not an image");
  }
  Dataset data = load_data(folder.path(), "train");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_TRUE(data.labels.equal(at::tensor({0, 0, 1, 1}, at::kLong)));
  expect_load_error(folder.path(), "has no test split");
  write_file(folder / "train" / "dog" / "c.png", png(3, 6, 5));
  expect_load_error(folder / "train", "a.PNG is 5x4 colour and c.png is 5x6 colour");
}

TEST(Formats, LabelsTable) {
  TemporaryFolder folder;
  for (const char* name : {"a.png", "b.png", "c.png"}) write_file(folder / name, png(1, 4, 4));
  write_file(folder / "labels.csv", "file,label\r\nb.png,owl\r\na.png,cat\r\nc.png,\r\n");
  Dataset data = load_data(folder.path());
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"cat", "owl"}));
  EXPECT_TRUE(data.labels.equal(at::tensor({1, 0, -1}, at::kLong)));
  write_file(folder / "labels.csv", "a.png,4\nb.png,2\n");
  EXPECT_EQ(load_data(folder.path()).classes(), 5);
  write_file(folder / "labels.csv", "a.png,4\nz.png,2\n");
  expect_load_error(folder.path(), "'z.png', which does not exist");
  write_file(folder / "labels.csv", "file,label\n../../etc/passwd,2\n");
  expect_load_error(folder.path(), "outside its folder");
  write_file(folder / "labels.csv", "a.png,-7\n");
  expect_load_error(folder.path(), "label -7");
  write_file(folder / "labels.csv", "a.png\n");
  expect_load_error(folder.path(), "not of the form file,label");
  fs::remove(folder / "labels.csv");
  EXPECT_FALSE(load_data(folder.path()).labelled());
}

TEST(Formats, BadImages) {
  TemporaryFolder folder;
  auto refused = [&](const std::string& name, const std::string& bytes, const std::string& message) {
    write_file(folder / name, bytes);
    testing::internal::CaptureStderr();
    expect_load_error(folder / name, message);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  };
  std::string good = png(3, 40, 40);
  refused("cut.png", good.substr(0, good.size() / 2), "PNG data ends early");
  std::string damaged = good;
  damaged[damaged.find("IDAT") + 6] ^= 0x55;
  refused("damaged.png", damaged, "PNG data is damaged");
  refused("text.png", "hello", "is not a PNG, JPEG, WebP, TIFF, BMP or PNM image");
  refused("empty.jpg", "", "is empty");
  std::string huge = good;
  huge.replace(16, 8, std::string("\x00\x0f\xff\xff\x00\x0f\xff\xff", 8));
  refused("huge.png", huge, "more than the 128 million accepted");
  refused("deep.pgm", "P5\n# a comment\n2 2\n1023\n12345678", "has values up to 1023");
  refused("cut.jpg", "\xff\xd8\xff\xe0", "ends inside its header");
}

TEST(Formats, BadIdx) {
  TemporaryFolder folder;
  const std::string header("\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\2", 16);
  auto refused = [&](const std::string& bytes, const std::string& message) {
    write_file(folder / "images-idx3", bytes);
    expect_load_error(folder / "images-idx3", message);
    fs::path zipped = gzip(folder / "images-idx3");
    expect_load_error(zipped, message);
    fs::remove(zipped);
  };
  refused(header + "1234567", "8 bytes of values follow");
  refused(header + "123456789", "8 bytes of values follow");
  refused(header.substr(0, 9), "ends inside its header");
  refused(std::string("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16), "impossibly large");
  refused(std::string("\0\0\x08\x03\x7f\xff\xff\xff\0\0\xff\xff\0\0\0\1", 16), "bytes of values follow");
  refused(std::string("\0\0\x08\x09", 4), "9 axes");
  refused(std::string("\0\0\x0d\x03", 4), "type 0x0d");
  refused(std::string("\0\0\x08\x03\0\0\0\0\0\0\0\2\0\0\0\2", 16), "axis 0 is empty");
  refused("hello", "two zero bytes");
  write_file(folder / "images-idx3", header + "12345678");
  write_file(folder / "labels-idx1", std::string("\0\0\x08\x01\0\0\0\3", 8) + "123");
  expect_load_error(folder / "images-idx3", "2 images, but");
  write_file(folder / "broken-idx3.gz", "\x1f\x8b\x08 not really gzip at all");
  expect_load_error(folder / "broken-idx3.gz", "cannot be unpacked");
  write_file(folder / "good-idx3", header + "12345678");
  std::string zipped = read_file(gzip(folder / "good-idx3"));
  EXPECT_EQ(load_data(folder / "good-idx3.gz").size(), 2);
  for (std::size_t i = zipped.size() - 8; i < zipped.size(); ++i) {
    std::string damaged = zipped;
    damaged[i] ^= 1;
    write_file(folder / "good-idx3.gz", damaged);
    expect_load_error(folder / "good-idx3.gz", "cannot be unpacked");
    write_file(folder / "good-idx3.gz", zipped.substr(0, i));
    expect_load_error(folder / "good-idx3.gz", "cannot be unpacked");
  }
}

TEST(Formats, BadNumpy) {
  TemporaryFolder folder;
  auto refused = [&](const at::Tensor& images, const std::string& message) {
    write_npy(folder / "images.npy", images);
    expect_load_error(folder / "images.npy", message);
  };
  refused(at::rand({2, 4, 4}), "images are Float, but uint8");
  refused(at::zeros({2, 3, 8, 3}, at::kByte), "could be [N,H,W,C] or [N,C,H,W]");
  refused(at::zeros({2, 4, 8, 5}, at::kByte), "no axis of 1 or 3 channels");
  refused(at::zeros({4}, at::kByte), "1 axes");
  refused(at::zeros({0, 4, 4}, at::kByte), "no images");
  write_npy(folder / "images.npy", at::zeros({2, 4, 4}, at::kByte));
  write_npy(folder / "labels.npy", at::tensor({1, 2, 3}));
  expect_load_error(folder / "images.npy", "2 images, but");
  write_npy(folder / "labels.npy", at::tensor({1, 1 << 21}));
  expect_load_error(folder / "images.npy", "label 2097152");
  write_npz(folder / "a.npz", {{"pictures", at::zeros({2, 4, 4}, at::kByte)}});
  expect_load_error(folder / "a.npz", "no array called images");
  std::string zip = read_file(folder / "a.npz");
  write_file(folder / "a.npz", zip.substr(0, zip.size() / 2));
  EXPECT_THROW(load_data(folder / "a.npz"), Error);
  write_file(folder / "a.npz", "PK nothing");
  EXPECT_THROW(load_data(folder / "a.npz"), Error);
}

TEST(Unpack, BombsAndHostileNames) {
  TemporaryFolder folder;
  std::string zeros(8 << 20, '\0');
  write_file(folder / "bomb.zip", zip_bytes({{"a.npy", zeros}, {"../../evil.npy", "x"}}, true));
  auto all = [](const std::string&) { return true; };
  expect_error([&] { read_archive(folder / "bomb.zip", 1 << 20, all, [](const std::string&, const std::string&) {}); },
               "unpacks to more than 1.0 MiB");
  std::vector<std::string> names;
  read_archive(folder / "bomb.zip", 16 << 20, all,
               [&](const std::string& name, const std::string&) { names.push_back(name); });
  EXPECT_EQ(names.size(), 2U);
  EXPECT_FALSE(fs::exists(folder.path().parent_path().parent_path() / "evil.npy"));
  write_file(folder / "zeros", zeros);
  fs::path zipped = gzip(folder / "zeros");
  expect_error([&] { read_maybe_gzip(zipped, 1 << 20); }, "unpacks to more than 1.0 MiB");
}

TEST(Dataset, JoinsWhatFits) {
  Dataset joined = load_data("digits[:5]+digits:train[:3]");
  EXPECT_EQ(joined.size(), 8);
  EXPECT_EQ(joined.name, "digits:test[:5]+digits:train[:3]");
  TemporaryFolder folder;
  Dataset other = random_data(3, 1, 28, 28);
  write_sample_folder(other, folder / "x");
  expect_error([&] { load_data("digits[:5]+" + (folder / "x").string()); }, "their classes are");
  write_npz_dataset(random_data(3, 3, 28, 28), folder / "y.npz");
  expect_error([&] { load_data("digits[:5]+" + (folder / "y.npz").string()); }, "their images are");
}

TEST(Catalogue, RefusesOtherContentAndLeavesNothingBehind) {
  TemporaryFolder folder;
  ASSERT_EQ(setenv("GALVANI_CACHE", (folder / "cache").c_str(), 1), 0);
  expect_error([] { load_data("mnist"); }, "run: galvani data get mnist");
  Dataset data = random_data(3, 1, 28, 28);
  write_idx(data, folder / "mine", "t10k");
  write_idx(data, folder / "mine", "train");
  expect_error([&] { get_data(catalogue_entry("mnist"), folder / "mine"); }, "its checksum differs");
  fs::remove(folder / "mine" / "train-labels-idx1-ubyte");
  expect_error([&] { get_data(catalogue_entry("cifar10"), folder / "mine"); }, "holds neither data_batch_1.bin");
  EXPECT_FALSE(data_folder(catalogue_entry("mnist")));
  EXPECT_TRUE(fs::is_empty(folder / "cache" / "data"));
  unsetenv("GALVANI_CACHE");
}

TEST(Sheet, IsAnImage) {
  TemporaryFolder folder;
  for (std::int64_t channels : {1, 3}) {
    write_sheet(random_data(50, channels), folder / "sheet.png");
    EXPECT_EQ(load_data(folder / "sheet.png").channels(), 3);
  }
}

}  // namespace
}  // namespace galvani
