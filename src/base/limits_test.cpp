#include "galvani/base/limits.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/runtime.h"

namespace galvani {
namespace {

void exit_with_reason(StepEnd end, const char* sentence) {
  bool named = std::string(sentence).find("file.pt") != std::string::npos;
  ::_exit(named ? 10 + static_cast<int>(end) : 1);
}

// The exit code of a process in which a step does `work`; 0 if it came to its end.
int in_step(double seconds, const std::function<void()>& work) {
  pid_t child = ::fork();
  if (child == 0) {
    install_interrupt_handler();
    set_step_end_handler(exit_with_reason);
    {
      StepLimit limit("file.pt", seconds);
      work();
    }
    // What happens after a step is not its business.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void forever() {
  for (volatile int i = 0;; i = 1 - i) {
  }
}

TEST(StepLimit, EndsAStepThatTakesTooLong) {
  EXPECT_EQ(in_step(0.2, forever), 10 + static_cast<int>(StepEnd::too_long));
  EXPECT_EQ(in_step(0.2, [] {}), 0);
}

TEST(StepLimit, CtrlCEndsAStepThatDoesNotLook) {
  EXPECT_EQ(in_step(0,
                    [] {
                      ::raise(SIGINT);
                      forever();
                    }),
            10 + static_cast<int>(StepEnd::interrupted));
}

TEST(StepLimit, AStepThatLooksUpIsToldInOrder) {
  {
    StepLimit limit("file.pt", 0.05);
    // Waiting is no computing.
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    EXPECT_NO_THROW(check_step());
    auto compute = [] {
      for (volatile std::int64_t i = 0; true; i = i + 1) {
        if (i % 1000 == 0) check_step();
      }
    };
    EXPECT_THROW(compute(), Error);
  }
  EXPECT_NO_THROW(check_step());
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(StepLimit, ACrashIsSaidByName) {
  int crashed = 10 + static_cast<int>(StepEnd::crashed);
  EXPECT_EQ(in_step(0, [] { ::raise(SIGSEGV); }), crashed);
  EXPECT_EQ(in_step(0, [] { ::raise(SIGFPE); }), crashed);
  EXPECT_EQ(in_step(0, [] { std::abort(); }), crashed);
  // Infinite recursion: there is no stack left to handle it on.
  EXPECT_EQ(in_step(0,
                    [] {
                      std::function<int(int)> down = [&](int n) {
                        volatile char room[1000];
                        room[n % 1000] = 1;
                        return down(n + 1) + room[0];
                      };
                      down(0);
                    }),
            crashed);
}

TEST(StepLimit, MemoryIsLimitedWhileItLasts) {
  auto can_have = [](std::uint64_t bytes) {
    void* memory = std::malloc(bytes);
    bool there = memory != nullptr;
    std::free(memory);
    return there;
  };
  std::uint64_t most = available_memory() / 4 * 3;
  EXPECT_TRUE(can_have(most));
  {
    StepLimit limit("file.pt", 0);
    EXPECT_FALSE(can_have(most));
    EXPECT_TRUE(can_have(limit.memory() / 2));
  }
  EXPECT_TRUE(can_have(most));
}
#endif

TEST(StepLimit, AnInnerStepChangesNothing) {
  EXPECT_EQ(in_step(0.2,
                    [] {
                      { StepLimit inner("other", 100); }
                      forever();
                    }),
            10 + static_cast<int>(StepEnd::too_long));
}

}  // namespace
}  // namespace galvani
