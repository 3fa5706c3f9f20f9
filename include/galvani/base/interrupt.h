// Ctrl-C, SIGTERM and SIGHUP ask politely: long work looks at interrupted() between steps and saves. A second Ctrl-C or
// SIGTERM ends at once; a second SIGHUP does not, for a closing terminal sends several.
#pragma once

namespace galvani {

void install_interrupt_handler();
// As the first such signal would: for a program with handlers of its own. May be called in one.
void request_interrupt(int signal);
bool interrupted();
int interrupt_signal();  // the one that asked first; 0: none did
void clear_interrupt();
// Throws Error(interrupted) if asked to stop.
void check_interrupt();
// Removes files in the making and exits with 128 + signal; may be called in a signal handler.
[[noreturn]] void end_at_once(int signal);

}  // namespace galvani
