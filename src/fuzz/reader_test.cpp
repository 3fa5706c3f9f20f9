#include "galvani/fuzz/reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fuzz/testing.h"
#include "galvani/base/files.h"
#include "galvani/data/image.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() {
    testing::Subject subject;
    Campaign campaign(folder(), testing::small_settings("random"), subject.view());
    Budget budget;
    budget.iterations = 24;
    campaign.run(budget, {});
  }
  fs::path folder() const { return temporary_ / "run"; }

  // What the reader says about a fault, or the second one, after its file's name in the store was changed.
  std::string with_name(const std::string& file) {
    {
      Database database(folder() / "campaign.db", Database::Mode::write);
      Statement(database, "UPDATE faults SET file = ? WHERE id = 2").run(file);
    }
    CampaignReader reader(folder());
    return testing::error_of([&] { reader.image(reader.fault(2)); });
  }
  // And after something was put where its file was.
  template <class Put>
  std::string with_file(Put put) {
    CampaignReader reader(folder());
    FaultRecord fault = reader.faults().at(0);
    fs::path path = folder() / fault.file;
    std::string bytes = read_file(path);
    fs::remove(path);
    put(path, bytes);
    std::string message = testing::error_of([&] { reader.image(fault); });
    fs::remove(path);
    write_file(path, bytes);
    EXPECT_EQ(testing::error_of([&] { reader.image(fault); }), "");
    return message;
  }
  static void expect_mentions(const std::string& message, const std::string& what) {
    EXPECT_NE(message.find(what), std::string::npos) << "'" << message << "' does not say '" << what << "'";
  }

  TemporaryFolder temporary_;
};

TEST_F(ReaderTest, FaultsAreReadFromFilesOfTheirOwnAlone) {
  CampaignReader reader(folder());
  FaultRecord second = reader.fault(2);
  FaultRecord other = reader.faults().back();
  ASSERT_GT(other.id, 2);
  fs::copy_file(folder() / second.file, temporary_ / "outside.png");
  std::string name = fs::path(second.file).filename().string();
  for (const std::string& file :
       {std::string("/etc/hostname"), (temporary_ / "outside.png").string(), std::string("../outside.png"),
        std::string("faults/../../outside.png"), "faults/./" + name, "faults//" + name, "./" + second.file, name,
        std::string("campaign.db"), std::string("faults/"), std::string(), second.file + "/", second.file + "\n",
        "faults/0" + name, other.file, std::string("faults/00000000-1-2.png"), std::string("faults/-0000001-1-2.png")})
    expect_mentions(with_name(file), "fault 2");
  EXPECT_EQ(with_name(second.file), "");
}

TEST_F(ReaderTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  fs::path outside = temporary_ / "outside.png";
  auto link = [&](const fs::path& path, const std::string& bytes) {
    write_file(outside, bytes);
    fs::create_symlink(outside, path);
  };
  expect_mentions(with_file(link), "symbolic link");
  expect_mentions(with_file([](const fs::path& path, auto&) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }),
                  "not a regular file");
  expect_mentions(with_file([](const fs::path& path, auto&) { fs::create_symlink("/dev/zero", path); }),
                  "symbolic link");
  expect_mentions(with_file([](const fs::path& path, auto&) { fs::create_directory(path); }), "not a regular file");
  expect_mentions(with_file([](const fs::path& path, auto& bytes) {
                    write_file(path, bytes);
                    fs::resize_file(path, std::uintmax_t{1} << 40);
                  }),
                  "more than");
  expect_mentions(with_file([](const fs::path&, auto&) {}), "no such file");
  // A whole folder elsewhere.
  fs::rename(folder() / "faults", temporary_ / "elsewhere");
  fs::create_directory_symlink(temporary_ / "elsewhere", folder() / "faults");
  CampaignReader reader(folder());
  expect_mentions(testing::error_of([&] { reader.image(reader.fault(1)); }), "symbolic link");
}

TEST_F(ReaderTest, OtherPixelsAreNoticed) {
  expect_mentions(with_file([](const fs::path& path, const std::string& bytes) {
                    at::Tensor image = decode_image_tensor(bytes, "a fault");
                    image[0][3][4] = image[0][3][4].item<std::uint8_t>() ^ 1;
                    write_file(path, encode_png(image));
                  }),
                  "other pixels");
  // The same bytes in another shape.
  expect_mentions(with_file([](const fs::path& path, const std::string& bytes) {
                    write_file(path, encode_png(decode_image_tensor(bytes, "a fault").view({1, 14, 56})));
                  }),
                  "other pixels");
  std::int64_t kept = 21;  // after the seeds
  {
    Database database(folder() / "campaign.db", Database::Mode::write);
    database.execute("UPDATE seeds SET image = (SELECT image FROM seeds WHERE id = 2) WHERE id = 1");
    database.execute("UPDATE inputs SET image = (SELECT image FROM seeds WHERE id = 2) WHERE id = 21");
  }
  CampaignReader reader(folder());
  expect_mentions(testing::error_of([&] { reader.image(1); }), "other pixels");
  expect_mentions(testing::error_of([&] { reader.image(kept); }), "other pixels");
  EXPECT_EQ(testing::error_of([&] { reader.image(2); }), "");
}

TEST_F(ReaderTest, AStoreThatIsAPipeIsNotWaitedFor) {
  fs::remove(folder() / "campaign.db");
  ASSERT_EQ(::mkfifo((folder() / "campaign.db").c_str(), 0600), 0);
  expect_mentions(testing::error_of([&] { CampaignReader reader(folder()); }), "not a regular file");
}

}  // namespace
}  // namespace galvani
