// Bounds on a step whose cost a file decides: loading a model and running it for the first time.
#pragma once

#include <cstdint>
#include <string>

namespace galvani {

// How a step ended that could not end itself.
enum class StepEnd { too_long, interrupted, crashed };

// Called from a watching thread, or for a crash from a signal handler: it may only do what is safe there, and must end
// the process. Without a handler there is no limit on time, and a crash is the caller's. The sentence names the file.
using StepEndHandler = void (*)(StepEnd end, const char* sentence);
void set_step_end_handler(StepEndHandler handler);

// For work that can look up now and then: throws if the step it belongs to takes too long, or Ctrl-C was pressed.
void check_step();

// While it lives, the calling thread is in such a step: it may compute so many seconds (0: any), the process may take half
// of the memory that was free at the beginning, and Ctrl-C ends it at once. Steps do not nest: an inner one changes
// nothing.
class StepLimit {
 public:
  StepLimit(const std::string& label, double seconds);
  ~StepLimit();
  StepLimit(const StepLimit&) = delete;
  StepLimit& operator=(const StepLimit&) = delete;

  // What the process may take in addition to what it had.
  std::uint64_t memory() const { return memory_; }

 private:
  bool outer_ = false;
  std::uint64_t memory_ = 0;
  std::uint64_t previous_memory_limit_ = 0;
};

}  // namespace galvani
