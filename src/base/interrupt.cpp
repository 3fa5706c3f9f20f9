#include "galvani/base/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "galvani/base/error.h"

namespace galvani {
namespace {

volatile std::sig_atomic_t asked_to_stop = 0;

void on_signal(int signal) {
  if (asked_to_stop != 0) _exit(128 + signal);
  asked_to_stop = 1;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return asked_to_stop != 0;
}
void clear_interrupt() {
  asked_to_stop = 0;
}

void check_interrupt() {
  if (interrupted()) fail(ErrorCode::interrupted, "interrupted");
}

}  // namespace galvani
