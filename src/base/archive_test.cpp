#include "galvani/base/archive.h"

#include <gtest/gtest.h>

#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

std::string archive_refusal(const std::filesystem::path& path) {
  try {
    read_sealed(path, "profile", 3);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_input);
    return e.what();
  }
  return "";
}

TEST(Archive, GivesBackWhatWasWritten) {
  TemporaryFolder folder;
  ArchiveWriter writer;
  writer.put(std::int64_t{-5});
  writer.put("words");
  writer.put(std::vector<float>{1.5F, -2.5F});
  write_sealed(folder / "a", "profile", 3, writer.bytes());
  std::string payload = read_sealed(folder / "a", "profile", 3);
  ArchiveReader reader(payload, "a");
  EXPECT_EQ(reader.get<std::int64_t>(), -5);
  EXPECT_EQ(reader.get_text(), "words");
  EXPECT_EQ(reader.get_vector<float>(2), (std::vector<float>{1.5F, -2.5F}));
  EXPECT_NO_THROW(reader.expect_end());
}

TEST(Archive, RefusesDamageOtherKindsAndOtherVersions) {
  TemporaryFolder folder;
  std::string good = sealed_bytes("profile", 3, "payload");
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  write_file(folder / "flipped", flipped);
  EXPECT_NE(archive_refusal(folder / "flipped").find("checksum"), std::string::npos);
  write_file(folder / "short", good.substr(0, 20));
  EXPECT_NE(archive_refusal(folder / "short").find("cut short"), std::string::npos);
  write_file(folder / "text", "hello");
  EXPECT_NE(archive_refusal(folder / "text").find("is not a profile file"), std::string::npos);
  write_file(folder / "kind", sealed_bytes("state", 3, ""));
  EXPECT_NE(archive_refusal(folder / "kind").find("is a state file"), std::string::npos);
  write_file(folder / "version", sealed_bytes("profile", 4, ""));
  EXPECT_NE(archive_refusal(folder / "version").find("version 4"), std::string::npos);
}

TEST(Archive, LengthsAreCheckedBeforeMemoryIsTaken) {
  ArchiveWriter writer;
  writer.put(std::uint64_t{1} << 60);
  EXPECT_THROW(ArchiveReader(writer.bytes(), "x").get_vector<double>(), Error);
  EXPECT_THROW(ArchiveReader(writer.bytes(), "x").get_text(), Error);
  EXPECT_THROW(ArchiveReader("abc", "x").get<double>(), Error);
  ArchiveWriter two;
  two.put(std::vector<int>{1, 2});
  EXPECT_THROW(ArchiveReader(two.bytes(), "x").get_vector<int>(3), Error);
  EXPECT_THROW(ArchiveReader(two.bytes(), "x").expect_end(), Error);
}

}  // namespace
}  // namespace galvani
