// Ctrl-C in a crew of processes: one of them is asked, and all of them stop at the same place.
#pragma once

namespace galvani {

// From now on interrupted() tells what was agreed on, not what this process was asked.
void agree_on_interrupts();
int own_interrupt_signal();  // what this process was asked; 0: nothing
void set_agreed_interrupt(int signal);

}  // namespace galvani
