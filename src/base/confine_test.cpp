#include "galvani/base/confine.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/output_file.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

constexpr int kNoLandlock = 77;

// The exit code of a process that confines itself and then does `work`, which gives the code.
int in_confined_process(const Confinement& confinement, const std::function<int()>& work) {
  pid_t child = ::fork();
  if (child == 0) {
    int code = 100;
    try {
      code = confine(confinement).active ? work() : kNoLandlock;
    } catch (const std::exception& e) {
      fmt::print(stderr, "{}\n", e.what());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// 0, or why the file cannot be opened.
int open_for_writing(const fs::path& path, int flags = O_WRONLY | O_CREAT) {
  int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

#define EXPECT_CONFINED(expected, confinement, ...)                         \
  do {                                                                      \
    int code = in_confined_process(confinement, __VA_ARGS__);               \
    if (code == kNoLandlock) GTEST_SKIP() << "this kernel has no Landlock"; \
    EXPECT_EQ(code, expected);                                              \
  } while (false)

TEST(Confine, WritesOnlyBeneathItsFolders) {
  TemporaryFolder place;
  fs::create_directories(place / "mine");
  write_file(place / "theirs", "as it was");
  EXPECT_CONFINED(0, (Confinement{{place / "mine", place / "new"}, {}}), [&] {
    if (open_for_writing(place / "mine/file") != 0) return 1;
    if (open_for_writing(place / "new/file") != 0) return 2;
    if (open_for_writing(place / "other") != EACCES) return 3;
    if (open_for_writing(place / "theirs", O_WRONLY | O_TRUNC) != EACCES) return 4;
    if (open_for_writing(place / "theirs", O_RDWR) != EACCES) return 5;
    if (::mkdir((place / "folder").c_str(), 0700) == 0 || errno != EACCES) return 6;
    if (::unlink((place / "theirs").c_str()) == 0 || errno != EACCES) return 7;
    if (::rename((place / "mine/file").c_str(), (place / "theirs").c_str()) == 0) return 8;
    if (::symlink("x", (place / "link").c_str()) == 0 || errno != EACCES) return 9;
    if (read_file(place / "theirs") != "as it was") return 10;
    if (open_for_writing("/dev/null", O_WRONLY) != 0) return 11;
    return 0;
  });
}

TEST(Confine, StartsNoProgramAndOpensNoConnection) {
  EXPECT_CONFINED(0, Confinement(), [] {
    ::execl("/bin/true", "true", nullptr);
    if (errno != EACCES) return 1;
    int s = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in nobody{};
    nobody.sin_family = AF_INET;
    nobody.sin_port = htons(9);
    nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int result = ::connect(s, reinterpret_cast<sockaddr*>(&nobody), sizeof nobody);
    // An older kernel cannot close the network; then nobody listens there.
    return result != 0 && (errno == EACCES || errno == ECONNREFUSED) ? 0 : 2;
  });
}

TEST(Confine, AChildIsConfinedToo) {
  TemporaryFolder place;
  EXPECT_CONFINED(EACCES, Confinement(), [&] {
    pid_t child = ::fork();
    if (child == 0) ::_exit(open_for_writing(place / "x"));
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  });
}

TEST(Confine, OutputsAreWrittenByTheCourier) {
  TemporaryFolder place;
  write_file(place / "old", "old");
  fs::create_symlink("old", place / "link");
  ::chmod((place / "old").c_str(), 0640);
  EXPECT_CONFINED(0, (Confinement{{}, {place / "link", place / "new", place / "dropped"}}), [&] {
    write_file(place / "link", "replaced");
    write_file(place / "new", "first");
    write_file(place / "new", "second");
    OutputFile dropped(place / "dropped");
    dropped.write("never seen");
    if (open_for_writing(place / "new") != EACCES) return 1;
    try {
      write_file(place / "not named", "x");
      return 2;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::environment) return 3;
    }
    return 0;
  });
  EXPECT_EQ(read_file(place / "old"), "replaced");
  EXPECT_TRUE(fs::is_symlink(place / "link"));
  EXPECT_EQ(fs::status(place / "old").permissions(), fs::perms(0640));
  EXPECT_EQ(read_file(place / "new"), "second");
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(place.path())) ++left;
  EXPECT_EQ(left, 3U) << "something in the making was left behind";
}

TEST(Confine, TheCourierWritesOverLinksInPlaces) {
  TemporaryFolder place;
  write_file(place / "theirs", "theirs");
  fs::create_symlink("theirs", place / "page");
  EXPECT_CONFINED(0, (Confinement{{}, {}, {place / "page"}}), [&] {
    // However it asks: the courier knows what the name is for.
    write_over(place / "page", "first");
    write_file(place / "page", "second");
    return 0;
  });
  EXPECT_EQ(read_file(place / "theirs"), "theirs");
  EXPECT_FALSE(fs::is_symlink(place / "page"));
  EXPECT_EQ(read_file(place / "page"), "second");
}

TEST(Confine, AnOutputIsRemovedByTheCourier) {
  TemporaryFolder place;
  write_file(place / "checkpoint", "x");
  write_file(place / "theirs", "x");
  EXPECT_CONFINED(0, (Confinement{{}, {place / "checkpoint"}}), [&] {
    remove_output(place / "checkpoint");
    try {
      remove_output(place / "theirs");
      return 1;
    } catch (const fs::filesystem_error&) {
      return 0;
    }
  });
  EXPECT_FALSE(fs::exists(place / "checkpoint"));
  EXPECT_TRUE(fs::exists(place / "theirs"));
}

TEST(Confine, WhatCannotBeWrittenIsSaidByName) {
  TemporaryFolder place;
  EXPECT_CONFINED(0, (Confinement{{}, {place / "missing/out"}}), [&] {
    try {
      write_file(place / "missing/out", "x");
    } catch (const Error& e) {
      return std::string(e.what()).find("missing/out") != std::string::npos ? 0 : 1;
    }
    return 2;
  });
}

TEST(Confine, AnEmptyFolderThatWasMadeIsRemovedAgain) {
  TemporaryFolder place;
  fs::create_directories(place / "there");
  EXPECT_CONFINED(0, (Confinement{{place / "a/b", place / "used", place / "there"}, {}}),
                  [&] { return open_for_writing(place / "used/file"); });
  // The courier ends a moment after the process it served.
  for (int i = 0; i < 500 && fs::exists(place / "a"); ++i) ::usleep(10000);
  EXPECT_FALSE(fs::exists(place / "a"));
  EXPECT_TRUE(fs::exists(place / "used/file"));
  EXPECT_TRUE(fs::exists(place / "there"));
}

}  // namespace
}  // namespace galvani
