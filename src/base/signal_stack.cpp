#include "galvani/base/signal_stack.h"

#include <vector>

namespace galvani {
namespace {

constexpr std::size_t kBytes = 64 << 10;  // the registers of AVX-512 and AMX alone take twelve

class SignalStack {
 public:
  SignalStack() {
    stack_t present{};
    if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    memory_.resize(kBytes);
    stack_t own{};
    own.ss_sp = memory_.data();
    own.ss_size = memory_.size();
    sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (memory_.empty()) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::vector<char> memory_;
};

}  // namespace

void use_signal_stack() {
  alignas(16) thread_local SignalStack stack;
  static_cast<void>(stack);
}

struct sigaction handle_signal(int signal, void (*handler)(int), int flags) {
  use_signal_stack();
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = flags | SA_ONSTACK;
  sigaction(signal, &action, &before);
  return before;
}

}  // namespace galvani
