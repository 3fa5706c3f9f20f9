#include "galvani/base/signal_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "galvani/base/parallel.h"

namespace galvani {
namespace {

bool has_stack() {
  stack_t present{};
  return sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0 && present.ss_size >= 32 << 10;
}

TEST(SignalStack, EveryThreadThatComputesHasOne) {
  WorkerPool pool(3);
  std::vector<char> has(64, 0);
  pool.run(64, [&](std::int64_t i, int) { has[static_cast<std::size_t>(i)] = has_stack() ? 1 : 0; });
  EXPECT_EQ(std::count(has.begin(), has.end(), 1), 64);
}

void* handled_at = nullptr;
void remember(int) {
  handled_at = __builtin_frame_address(0);
}

TEST(SignalStack, AHandlerRunsThere) {
  std::thread([] {
    struct sigaction before = handle_signal(SIGUSR1, remember);
    stack_t present{};
    sigaltstack(nullptr, &present);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &before, nullptr);
    auto* begin = static_cast<char*>(present.ss_sp);
    EXPECT_TRUE(handled_at >= begin && handled_at < begin + present.ss_size);
  }).join();
}

}  // namespace
}  // namespace galvani
