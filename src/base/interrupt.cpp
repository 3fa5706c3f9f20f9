#include "galvani/base/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "base/shared_interrupt.h"
#include "base/temporary_name.h"
#include "galvani/base/error.h"
#include "galvani/base/signal_stack.h"

namespace galvani {
namespace {

volatile std::sig_atomic_t asked_by = 0;
bool by_agreement = false;
volatile std::sig_atomic_t agreed_on = 0;

void on_signal(int signal) {
  if (asked_by == 0) {
    request_interrupt(signal);
  } else if (signal != SIGHUP) {
    end_at_once(signal);
  }
}

}  // namespace

void install_interrupt_handler() {
  handle_signal(SIGINT, on_signal);
  handle_signal(SIGTERM, on_signal);
  // Under nohup it is ignored, and stays so.
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
  if (before.sa_handler != SIG_IGN) handle_signal(SIGHUP, on_signal);
}

void request_interrupt(int signal) {
  if (asked_by == 0) asked_by = signal;
}
bool interrupted() {
  return interrupt_signal() != 0;
}
int interrupt_signal() {
  return by_agreement ? agreed_on : asked_by;
}
void clear_interrupt() {
  asked_by = 0;
  agreed_on = 0;
}

void agree_on_interrupts() {
  by_agreement = true;
}
int own_interrupt_signal() {
  return asked_by;
}
void set_agreed_interrupt(int signal) {
  agreed_on = signal;
}

void check_interrupt() {
  if (interrupted()) fail(ErrorCode::interrupted, "interrupted");
}

void end_at_once(int signal) {
  remove_temporary_names();
  _exit(128 + signal);
}

}  // namespace galvani
