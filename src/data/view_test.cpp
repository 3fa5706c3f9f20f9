// Views: what they fetch is what loading gives, row by row, from every kind of source.
#include "galvani/data/view.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/export.h"
#include "galvani/data/npy.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

Dataset noise(std::int64_t n, std::int64_t channels) {
  Dataset data;
  data.name = "noise";
  data.images = at::randint(0, 256, {n, channels, 9, 7}, at::kByte);
  data.labels = at::arange(n, at::kLong).remainder(4);
  return data;
}

void write_sound(const fs::path& path, std::int64_t length, std::int64_t rate, std::int64_t value) {
  fs::create_directories(path.parent_path());
  write_file(path, SampleType::audio(1, length, rate).encode(at::full({1, length}, value, at::kShort)));
}

// A tensor in Fortran order, as NumPy saves the transpose of an array.
std::string fortran_npy(const at::Tensor& tensor) {
  std::vector<std::int64_t> reversed;
  for (std::int64_t axis = tensor.dim() - 1; axis >= 0; --axis) reversed.push_back(axis);
  std::string bytes = npy_bytes(tensor.permute(reversed));
  std::string shape = bytes.substr(bytes.find('('), bytes.find(')') - bytes.find('(') + 1);
  std::string other = "(";
  for (std::int64_t axis = 0; axis < tensor.dim(); ++axis)
    other += (axis == 0 ? "" : ", ") + std::to_string(tensor.size(axis));
  bytes.replace(bytes.find(shape), shape.size(), other + ")");
  // Same length: "False" and a blank become "True" and two.
  bytes.replace(bytes.find("False,"), 6, "True, ");
  return bytes;
}

TEST(DataView, FetchesFromEverySource) {
  TemporaryFolder folder;
  for (std::int64_t channels : {1, 3}) {
    Dataset data = noise(40, channels);
    std::string place = folder / std::to_string(channels);
    write_sample_folder(data, place + "/images");
    write_npz_dataset(data, place + "/a.npz");
    write_idx(data, place + "/idx", "t10k");
    at::Tensor array = channels == 1 ? data.images.squeeze(1) : data.images.permute({0, 2, 3, 1});
    write_npy(place + "/images.npy", array);
    write_npy(place + "/planes_images.npy", data.images);
    write_file(place + "/turned_images.npy", fortran_npy(array));
    for (const char* source : {"images", "a.npz", "idx", "images.npy", "planes_images.npy", "turned_images.npy"}) {
      DataView view = open_data(place + "/" + source + "[::-1][3:33]");
      SCOPED_TRACE(view.name);
      EXPECT_EQ(view.type(), data.type());
      at::Tensor expected = data.images.flip({0}).narrow(0, 3, 30);
      EXPECT_TRUE(view.fetch(0, 30).equal(expected));
      EXPECT_TRUE(view.fetch(17, 5).equal(expected.narrow(0, 17, 5)));
      EXPECT_TRUE(view.fetch({29, 0, 0, 5}).equal(expected.index_select(0, at::tensor({29, 0, 0, 5}))));
      EXPECT_EQ(view.fetch(4, 0).sizes().vec(), view.type().batch(0));
      DataView some = view.subset({7, 2});
      EXPECT_TRUE(some.fetch(0, 2).equal(expected.index_select(0, at::tensor({7, 2}))));
      EXPECT_TRUE(some.subset({1}).fetch(0, 1).equal(expected.narrow(0, 2, 1)));
      EXPECT_TRUE(view.load().images.equal(expected));
      std::vector<std::int64_t> starts;
      view.for_each_piece(13, [&](const at::Tensor& rows, std::int64_t first) {
        EXPECT_TRUE(rows.equal(expected.narrow(0, first, rows.size(0))));
        starts.push_back(first);
      });
      EXPECT_EQ(starts, (std::vector<std::int64_t>{0, 13, 26}));
    }
  }
}

TEST(DataView, JoinedPartsKeepTheirRows) {
  Dataset data = noise(30, 1);
  DataView joined = concatenate({data.subset({0, 1, 2}), data.subset({3}), data.subset({4, 5, 6, 7})});
  EXPECT_EQ(joined.size(), 8);
  EXPECT_TRUE(joined.fetch({7, 3, 0, 1, 4}).equal(data.images.index_select(0, at::tensor({7, 3, 0, 1, 4}))));
  EXPECT_TRUE(joined.labels.equal(data.labels.narrow(0, 0, 8)));
  EXPECT_NE(refusal([&] {
              concatenate({data, noise(3, 3)});
            }).find("their images are 1x9x7 and 3x9x7"),
            std::string::npos);
}

// The value by which campaigns know their data.
TEST(DataView, HashIsThatOfShapeValuesAndLabels) {
  Dataset data = noise(9000, 1);
  auto bytes = [](const at::Tensor& t) {
    return std::string_view(static_cast<const char*>(t.data_ptr()), static_cast<std::size_t>(t.nbytes()));
  };
  std::string whole = sha256("9000x1x9x7 " + sha256(bytes(data.images)) + " " + sha256(bytes(data.labels)));
  EXPECT_EQ(content_hash(data), whole);
  TemporaryFolder folder;
  write_npz_dataset(data, folder / "a.npz");
  EXPECT_EQ(content_hash(open_data(folder / "a.npz")), whole);
  data.images.view(-1)[-1].bitwise_xor_(1);
  EXPECT_NE(content_hash(data), whole);
}

TEST(DataView, FilesThatDifferAreFoundWhereverTheyAre) {
  TemporaryFolder folder;
  write_sample_folder(noise(20, 1), folder / "x");
  write_file(folder / "x/000017.png", SampleType::image(1, 8, 7).encode(at::zeros({1, 8, 7}, at::kByte)));
  DataView view = open_data(folder / "x");
  EXPECT_EQ(view.fetch(0, 17).size(0), 17);
  EXPECT_NE(refusal([&] { view.fetch(16, 3); }).find("000000.png is 7x9 gray and 000017.png is 7x8 gray"),
            std::string::npos);
}

TEST(DataView, SoundsOfAFolder) {
  TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) {
    write_sound(folder / "words/yes/" / fs::path(std::to_string(i) + ".wav"), 500, 8000, i);
    write_sound(folder / "words/no/" / fs::path(std::to_string(i) + ".WAV"), 500, 8000, -i);
  }
  write_file(folder / "words/no/notes.txt", "no sound");
  DataView view = open_data(folder / "words");
  EXPECT_EQ(view.type(), SampleType::audio(1, 500, 8000));
  EXPECT_EQ(view.class_names, (std::vector<std::string>{"no", "yes"}));
  EXPECT_TRUE(view.labels.equal(at::tensor({0, 0, 0, 1, 1, 1}, at::kLong)));
  at::Tensor expected = at::tensor({0, -1, -2, 0, 1, 2}, at::kShort);
  EXPECT_TRUE(view.fetch(0, 6).equal(expected.view({6, 1, 1}).expand({6, 1, 500})));
  EXPECT_EQ(open_data((folder / "words/yes/1.wav").string()).fetch(0, 1)[0][0][0].item<std::int64_t>(), 1);
  Dataset loaded = load_data((folder / "words").string());
  EXPECT_EQ(loaded.type(), view.type());
  EXPECT_EQ(content_hash(loaded), content_hash(view));

  write_sample_folder(view, folder / "again");
  DataView again = open_data(folder / "again");
  EXPECT_TRUE(fs::exists(folder / "again/000005.wav"));
  EXPECT_EQ(again.type(), view.type());
  EXPECT_EQ(again.class_names, view.class_names);
  EXPECT_EQ(content_hash(again), content_hash(view));

  write_sound(folder / "words/yes/9.wav", 501, 8000, 0);
  std::string message = refusal([&] { open_data(folder / "words").fetch(0, 7); });
  EXPECT_NE(message.find("0.WAV is 1x500 at 8000 Hz and 9.wav is 1x501 at 8000 Hz"), std::string::npos) << message;
  DataView longer = open_data((folder / "words").string() + "[length=600][4:]");
  EXPECT_EQ(longer.type(), SampleType::audio(1, 600, 8000));
  EXPECT_EQ(longer.name, (folder / "words").string() + "[length=600][4:]");
  EXPECT_TRUE(longer.fetch(0, 3).narrow(2, 0, 500).equal(
      at::tensor({1, 2, 0}, at::kShort).view({3, 1, 1}).expand({3, 1, 500})));
  EXPECT_EQ(longer.fetch(0, 3).narrow(2, 500, 100).abs().max().item<std::int64_t>(), 0);
  EXPECT_TRUE(
      open_data((folder / "words").string() + "[length=7]").fetch(0, 6).equal(view.fetch(0, 6).narrow(2, 0, 7)));
  EXPECT_NE(refusal([&] { open_data("digits[:3][length=5]"); }).find("only sounds have a length"), std::string::npos);
  EXPECT_NE(refusal([&] { concatenate({view, open_data("digits[:3]")}); }).find("cannot be joined"), std::string::npos);

  // Among images a sound is one of the files that do not count.
  write_file(folder / "words/yes/picture.png", SampleType::image(1, 8, 7).encode(at::zeros({1, 8, 7}, at::kByte)));
  EXPECT_EQ(open_data(folder / "words").size(), 1);
}

TEST(DataView, DigitsByTheMillion) {
  DataView pool = open_data("digits:pool");
  EXPECT_EQ(pool.size(), 10000000);
  EXPECT_EQ(at::bincount(pool.labels).min().item<std::int64_t>(), 1000000);
  DataView far = open_data("digits:pool[9999990:]");
  EXPECT_TRUE(far.labels.equal(pool.labels.narrow(0, 9999990, 10)));
  EXPECT_TRUE(far.fetch(0, 10).equal(pool.fetch(9999990, 10)));
  EXPECT_FALSE(far.fetch(0, 10).equal(pool.fetch(0, 10)));
}

}  // namespace
}  // namespace galvani
