#include "galvani/base/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

#include "galvani/base/error.h"

namespace galvani {
namespace {

TEST(Interrupt, IsAskedForOnceAndForgottenWhenCleared) {
  install_interrupt_handler();
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    clear_interrupt();
    EXPECT_FALSE(interrupted());
    EXPECT_NO_THROW(check_interrupt());
    std::raise(signal);
    EXPECT_TRUE(interrupted());
    EXPECT_EQ(interrupt_signal(), signal);
    try {
      check_interrupt();
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::interrupted);
    }
    EXPECT_TRUE(interrupted());  // stays until somebody clears it
    clear_interrupt();
    EXPECT_FALSE(interrupted());
    EXPECT_EQ(interrupt_signal(), 0);
  }
}

TEST(Interrupt, AProgramMayAskItself) {
  clear_interrupt();
  request_interrupt(SIGINT);
  request_interrupt(SIGTERM);
  EXPECT_EQ(interrupt_signal(), SIGINT);  // who asked first
  EXPECT_THROW(check_interrupt(), Error);
  clear_interrupt();
}

TEST(Interrupt, HangingUpTwiceIsNoHurry) {
  install_interrupt_handler();
  std::raise(SIGHUP);
  std::raise(SIGHUP);
  EXPECT_EQ(interrupt_signal(), SIGHUP);
  clear_interrupt();
}

TEST(Interrupt, WhatNohupIgnoresStaysIgnored) {
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;  // NOLINT(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
  sigaction(SIGHUP, &ignore, &before);
  install_interrupt_handler();
  std::raise(SIGHUP);
  EXPECT_FALSE(interrupted());
  sigaction(SIGHUP, &before, nullptr);
}

TEST(InterruptDeathTest, ASecondSignalEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::ExitedWithCode(128 + SIGINT), "");
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        std::raise(SIGHUP);
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace galvani
