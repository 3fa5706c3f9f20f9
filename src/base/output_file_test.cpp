#include "galvani/base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/temporary_name.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string write_refusal(const fs::path& path) {
  try {
    write_file(path, "x");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::environment) << e.what();
    return e.what();
  }
  return "";
}

std::string read_fifo(const fs::path& path) {
  int fd = ::open(path.c_str(), O_RDONLY);
  std::string bytes;
  char block[1000];
  for (ssize_t n = 0; (n = ::read(fd, block, sizeof block)) > 0;) bytes.append(block, static_cast<std::size_t>(n));
  ::close(fd);
  return bytes;
}

using Names = std::vector<std::string>;

// Whether files without a name can be had here.
bool nameless_files(const fs::path& folder) {
  int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

TEST(OutputFile, AppearsAsAWholeAndOnlyByCommit) {
  TemporaryFolder folder;
  std::string large(200000, 'x');
  {
    OutputFile file(folder / "a");
    file.write("head\n");
    file.write(large);
    file.write("tail\n");
    EXPECT_FALSE(fs::exists(folder / "a"));
    if (nameless_files(folder.path())) {
      EXPECT_EQ(names_in(folder.path()), Names{});
    }
    file.commit();
    EXPECT_EQ(names_in(folder.path()), Names{"a"});
  }
  EXPECT_EQ(read_file(folder / "a"), "head\n" + large + "tail\n");
  {
    OutputFile abandoned(folder / "a");
    abandoned.write(large);
  }
  EXPECT_EQ(read_file(folder / "a").size(), large.size() + 10);
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(OutputFile, TwoAtATimeTheLastOneCounts) {
  TemporaryFolder folder;
  OutputFile one(folder / "a"), two(folder / "a");
  one.write("one");
  two.write("two");
  two.commit();
  one.commit();
  EXPECT_EQ(read_file(folder / "a"), "one");
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(OutputFile, PermissionsOfAnExistingFileStay) {
  TemporaryFolder folder;
  write_file(folder / "a", "old");
  for (auto mode : {fs::perms(0600), fs::perms(0755), fs::perms(0)}) {
    fs::permissions(folder / "a", mode);
    write_file(folder / "a", "new");
    EXPECT_EQ(fs::status(folder / "a").permissions(), mode);
  }
}

TEST(OutputFile, ALongNameIsNoObstacle) {
  TemporaryFolder folder;
  std::string name(255, 'n');
  for (const char* text : {"new", "replaced"}) {
    write_file(folder / name, text);
    EXPECT_EQ(read_file(folder / name), text);
  }
}

TEST(OutputFile, LinksStayAndTheFileTheyNameIsReplaced) {
  TemporaryFolder folder;
  fs::create_directory(folder / "deep");
  write_file(folder / "deep/target", "old");
  fs::create_hard_link(folder / "deep/target", folder / "before");
  fs::create_symlink("deep/target", folder / "relative");
  fs::create_symlink(folder / "relative", folder / "absolute");
  write_file(folder / "absolute", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "absolute") && fs::is_symlink(folder / "relative"));
  EXPECT_EQ(read_file(folder / "deep/target"), "new");
  EXPECT_EQ(read_file(folder / "before"), "old") << "changed in place";
  EXPECT_EQ(names_in(folder / "deep"), Names{"target"});

  fs::create_symlink("deep/made", folder / "dangling");
  write_file(folder / "dangling", "made");
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(read_file(folder / "deep/made"), "made");

  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  EXPECT_EQ(write_refusal(folder / "a"),
            (folder / "a").string() + ": cannot be written: its symbolic links lead in a circle");
}

TEST(OutputFile, WhateverIsWrittenOverIsReplaced) {
  TemporaryFolder folder;
  write_file(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  fs::create_symlink("made", folder / "dangling");
  fs::create_symlink("circle", folder / "circle");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::permissions(folder / "target", fs::perms(0600));
  for (const char* name : {"link", "dangling", "circle", "pipe", "target", "new"}) {
    check_output(folder / name, Writes::over);
    write_over(folder / name, name);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / name))) << name;
    EXPECT_EQ(read_file(folder / name), name);
    if (std::string(name) == "link") {
      EXPECT_EQ(read_file(folder / "target"), "old");
    }
  }
  EXPECT_EQ(fs::status(folder / "target").permissions(), fs::perms(0600));
  EXPECT_FALSE(fs::exists(folder / "made"));
  fs::create_directory(folder / "folder");
  EXPECT_THROW(check_output(folder / "folder", Writes::over), Error);
  EXPECT_THROW(write_over(folder / "folder", "x"), Error);
}

TEST(OutputFile, AFifoIsWrittenAsItIs) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  for (const char* name : {"pipe", "link"}) {
    std::string found;
    std::thread reader([&] { found = read_fifo(folder / "pipe"); });
    std::string bytes(300000, 'y');
    write_file(folder / name, bytes);
    reader.join();
    EXPECT_TRUE(found == bytes) << found.size();
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

TEST(OutputFile, WaitingForAReaderCanBeInterrupted) {
  install_interrupt_handler();
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  auto expect_interrupted = [&](const std::string& bytes) {
    std::thread impatient([] {
      ::usleep(200000);
      ::kill(::getpid(), SIGINT);
    });
    try {
      write_file(folder / "pipe", bytes);
      ADD_FAILURE() << "nobody read it";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::interrupted);
    }
    impatient.join();
    clear_interrupt();
  };
  expect_interrupted("nobody opens it");
  int lazy = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  expect_interrupted(std::string(1 << 20, 'z'));
  ::close(lazy);
}

TEST(OutputFile, DevicesAndOwnDescriptorsAreWrittenAsTheyAre) {
  TemporaryFolder folder;
  fs::path device = folder / "null";
  if (::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) {
    write_file(device, "gone");
    EXPECT_TRUE(fs::is_character_file(device));
    EXPECT_EQ(names_in(folder.path()), Names{"null"});
    fs::remove(device);
  }
  // A descriptor keeps its position and the file its place.
  write_file(folder / "a", "old ");
  int fd = ::open((folder / "a").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(fd, 0);
  write_file("/dev/fd/" + std::to_string(fd), "and ");
  fs::create_symlink("/proc/self/fd/" + std::to_string(fd), folder / "link");
  write_file(folder / "link", "new");
  ::close(fd);
  EXPECT_EQ(read_file(folder / "a"), "old and new");
}

TEST(OutputFile, SaysWhatCannotBeWritten) {
  TemporaryFolder folder;
  EXPECT_EQ(write_refusal(folder.path()), folder.path().string() + ": is a folder, not a file");
  EXPECT_EQ(write_refusal(""), "the name of a file to write is empty");
  EXPECT_EQ(write_refusal(folder / "no/such"),
            (folder / "no/such").string() + ": cannot be written: No such file or directory");
  int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(write_refusal(folder / "socket"),
            (folder / "socket").string() + ": is a socket, which cannot be written like a file");
  ::close(server);
}

TEST(TemporaryNameDeathTest, IsRemovedWhenTheProcessEndsAtOnce) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  TemporaryFolder folder;
  write_file(folder / "kept", "x");
  auto begin = [&] {
    auto* name = new TemporaryName(folder / "a");  // nobody unwinds
    int fd = ::open(name->c_str(), O_CREAT | O_EXCL | O_WRONLY, 0666);
    if (fd < 0 || names_in(folder.path()).size() != 2) ::_exit(1);
  };
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        begin();
        std::raise(SIGTERM);
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
  EXPECT_EQ(names_in(folder.path()), Names{"kept"});
  EXPECT_EXIT(
      {
        begin();
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
  EXPECT_EQ(names_in(folder.path()), Names{"kept"});
}

TEST(TemporaryName, IsTakenAwayUnlessReleased) {
  TemporaryFolder folder;
  std::string released;
  for (bool release : {false, true}) {
    TemporaryName name(folder / "a");
    EXPECT_EQ(fs::path(name.c_str()).filename().string().rfind(".a.", 0), 0U);
    write_file(name.c_str(), "x");
    if (release) name.release();
    released = name.c_str();
  }
  remove_temporary_names();
  EXPECT_EQ(names_in(folder.path()), Names{fs::path(released).filename().string()});
}

TEST(CheckOutput, RefusesWhatCannotBeWrittenAndMakesNothing) {
  TemporaryFolder folder;
  EXPECT_NO_THROW(check_output(folder / "new"));
  EXPECT_FALSE(fs::exists(folder / "new"));
  write_file(folder / "old", "kept");
  EXPECT_NO_THROW(check_output(folder / "old"));
  EXPECT_EQ(read_file(folder / "old"), "kept");
  EXPECT_NO_THROW(check_output("/dev/null"));
  fs::create_symlink("new", folder / "link");
  EXPECT_NO_THROW(check_output(folder / "link"));
  fs::create_symlink("none/new", folder / "astray");
  fs::create_symlink("circle", folder / "circle");
  for (const fs::path& bad :
       {folder / "none/new", folder.path(), folder / "astray", folder / "circle", folder / "old/new"})
    EXPECT_THROW(check_output(bad), Error) << bad;
}

}  // namespace
}  // namespace galvani
