#include "galvani/base/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

#include "galvani/base/error.h"

namespace galvani {
namespace {

TEST(Interrupt, IsAskedForOnceAndForgottenWhenCleared) {
  install_interrupt_handler();
  for (int signal : {SIGINT, SIGTERM}) {
    clear_interrupt();
    EXPECT_FALSE(interrupted());
    EXPECT_NO_THROW(check_interrupt());
    std::raise(signal);
    EXPECT_TRUE(interrupted());
    try {
      check_interrupt();
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::interrupted);
    }
    EXPECT_TRUE(interrupted());  // stays until somebody clears it
    clear_interrupt();
    EXPECT_FALSE(interrupted());
  }
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
}

}  // namespace
}  // namespace galvani
