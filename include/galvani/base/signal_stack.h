// Where signal handlers run. Kernels that oneDNN compiles use the stack pointer as one more register; a handler on the
// stack of the thread it interrupts would write over whatever that points to. Nor has a stack that overflowed room for
// one.
#pragma once

#include <csignal>

namespace galvani {

// Handlers with SA_ONSTACK have a stack of their own when they interrupt this thread, from now on.
void use_signal_stack();
// The handler runs on such a stack; this thread has one from now on. Returns what was set before.
struct sigaction handle_signal(int signal, void (*handler)(int), int flags = SA_RESTART);

}  // namespace galvani
