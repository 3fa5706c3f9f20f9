#include "galvani/base/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace galvani {
namespace {

TEST(Terminal, WhatIsNoneHasNoWidth) {
  int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(terminal_width(file), 0);
  ::close(file);
}

TEST(Terminal, SaysItsWidth) {
  int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) GTEST_SKIP() << "no pseudo-terminals here";
  int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "no pseudo-terminals here";
  winsize size{24, 61, 0, 0};
  ASSERT_EQ(::ioctl(master, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(terminal_width(terminal), 61);
  size.ws_col = 0;
  ASSERT_EQ(::ioctl(master, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(terminal_width(terminal), 0);
  ::close(terminal);
  ::close(master);
}

TEST(Terminal, ColourIsAsTheEnvironmentSays) {
  for (const char* name : {"NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR"}) ::unsetenv(name);
  EXPECT_EQ(wanted_colour(), Colour::automatic);
  ::setenv("FORCE_COLOR", "0", 1);
  EXPECT_EQ(wanted_colour(), Colour::automatic);
  ::setenv("FORCE_COLOR", "1", 1);
  EXPECT_EQ(wanted_colour(), Colour::always);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(wanted_colour(), Colour::never) << "who wants none gets none";
  ::setenv("NO_COLOR", "", 1);
  EXPECT_EQ(wanted_colour(), Colour::always) << "an empty one says nothing";
  for (const char* name : {"NO_COLOR", "FORCE_COLOR"}) ::unsetenv(name);
}

}  // namespace
}  // namespace galvani
