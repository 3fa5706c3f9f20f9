#include "galvani/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "base/testing.h"
#include "galvani/base/error.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(Files, WhatIsWrittenIsRead) {
  TemporaryFolder folder;
  std::string bytes("\0binary\r\n\xff", 10);
  write_file(folder / "a", bytes);
  EXPECT_EQ(read_file(folder / "a"), bytes);
  write_file(folder / "empty", "");
  EXPECT_EQ(read_file(folder / "empty"), "");
  EXPECT_EQ(entries_in(folder.path()), 2U);
}

TEST(Files, WritingReplacesTheFileInsteadOfChangingIt) {
  TemporaryFolder folder;
  write_file(folder / "a", "old");
  std::ifstream reader(folder / "a");  // keeps the old file open
  fs::create_hard_link(folder / "a", folder / "link");
  write_file(folder / "a", "new, and longer");
  EXPECT_EQ(read_file(folder / "a"), "new, and longer");
  EXPECT_EQ(read_file(folder / "link"), "old");
  std::string seen;
  std::getline(reader, seen);
  EXPECT_EQ(seen, "old");
}

TEST(Files, AFailedWriteLeavesTheOldFileAndNothingElse) {
  TemporaryFolder folder;
  fs::create_directory(folder / "target");
  std::string message = message_of(ErrorCode::environment, [&] { write_file(folder / "target", "x"); });
  EXPECT_NE(message.find((folder / "target").string()), std::string::npos);
  EXPECT_EQ(entries_in(folder.path()), 1U);
  message = message_of(ErrorCode::environment, [&] { write_file(folder / "no/such/folder", "x"); });
  EXPECT_NE(message.find("No such file"), std::string::npos) << message;
}

TEST(Files, WrittenFilesHaveTheUsualPermissions) {
  TemporaryFolder folder;
  mode_t before = ::umask(027);
  write_file(folder / "a", "x");
  ::umask(before);
  EXPECT_EQ(fs::status(folder / "a").permissions(), fs::perms(0640));
}

TEST(Files, ReadingSaysWhatIsWrong) {
  TemporaryFolder folder;
  auto refusal = [&](const fs::path& path, std::uint64_t limit = 1000) {
    std::string message = message_of(ErrorCode::bad_input, [&] { read_file(path, limit); });
    EXPECT_EQ(message.find(path.string() + ": "), 0U) << message;
    return message.substr(std::min(message.size(), path.string().size() + 2));
  };
  EXPECT_EQ(refusal(folder / "missing"), "there is no such file");
  EXPECT_EQ(refusal(folder.path()), "is a folder, not a file");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder / "pipe"), "is not a regular file");  // and does not wait for a writer
  write_file(folder / "large", std::string(1001, 'x'));
  EXPECT_EQ(refusal(folder / "large"), "is 1001 B, more than the 1000 B accepted");
  EXPECT_EQ(read_file(folder / "large", 1001).size(), 1001U);
}

// FIPS 180-2, appendix B.
TEST(Files, Sha256KnownVectors) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  TemporaryFolder folder;
  write_file(folder / "a", std::string(1000000, 'a'));
  EXPECT_EQ(sha256_file(folder / "a"), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  write_file(folder / "blocks", std::string((1 << 20) + 1, 'x'));  // more than one read
  EXPECT_EQ(sha256_file(folder / "blocks"), sha256(std::string((1 << 20) + 1, 'x')));
}

TEST(Files, Sha256OfWhatCannotBeReadIsRefused) {
  TemporaryFolder folder;
  EXPECT_NE(message_of(ErrorCode::bad_input, [&] { sha256_file(folder / "missing"); }), "");
  EXPECT_NE(message_of(ErrorCode::bad_input, [&] { sha256_file(folder.path()); }), "");
}

TEST(Files, TemporaryFoldersAreDistinctAndRemovedWithTheirContent) {
  fs::path first;
  {
    TemporaryFolder a("galvani-test");
    TemporaryFolder b("galvani-test");
    first = a.path();
    EXPECT_NE(a.path(), b.path());
    EXPECT_EQ(first.filename().string().find("galvani-test."), 0U);
    fs::create_directories(a / "deep/er");
    write_file(a / "deep/er/file", "x");
    EXPECT_TRUE(fs::exists(first));
  }
  EXPECT_FALSE(fs::exists(first));
}

// Sets an environment variable, or removes it, and puts back what was there.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) const { value == nullptr ? ::unsetenv(name_) : ::setenv(name_, value, 1); }

  const char* name_;
  std::optional<std::string> old_;
};

TEST(Files, CacheFolderFollowsTheEnvironment) {
  Environment home("HOME", "/h");
  Environment xdg("XDG_CACHE_HOME", nullptr);
  Environment own("GALVANI_CACHE", nullptr);
  EXPECT_EQ(cache_folder(), "/h/.cache/galvani");
  Environment xdg_set("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(cache_folder(), "/x/galvani");
  Environment own_set("GALVANI_CACHE", "/own");
  EXPECT_EQ(cache_folder(), "/own");
  Environment own_empty("GALVANI_CACHE", "");
  EXPECT_EQ(cache_folder(), "/x/galvani");
}

}  // namespace
}  // namespace galvani
