#include <c10/util/Exception.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/limits.h"
#include "galvani/base/log.h"
#include "galvani/cluster/mpi.h"
#include "verb.h"

namespace galvani::cli {

namespace {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return 2;
    case ErrorCode::bad_input:
      return 3;
    case ErrorCode::environment:
      return 4;
    case ErrorCode::interrupted:
      return 128 + interrupt_signal();
    case ErrorCode::internal:
      return 70;
  }
  return 70;
}

// The step cannot go on and cannot be unwound: this may run in a signal handler.
[[noreturn]] void end_step(StepEnd end, const char* sentence) {
  for (const char* text : {"error: ", sentence, "\n"}) (void)!::write(STDERR_FILENO, text, std::strlen(text));
  if (end == StepEnd::interrupted) end_at_once(interrupt_signal());
  _exit(exit_code_of(ErrorCode::bad_input));
}

// What was printed must have arrived: a full disk shows only when the buffers are emptied.
void check_output() {
  bool good = static_cast<bool>(std::cout.flush()) && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!good) fail(ErrorCode::environment, "standard output cannot be written");
}

// The verbs in the order in which one meets them.
std::string overview(const Verb& app) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> kGroups = {
      {"Data and models", {"data", "model", "train", "train-generator", "train-captioner", "inspect", "predict"}},
      {"What a network does", {"cover", "profile", "trace", "features", "excite", "describe", "explain"}},
      {"Breaking it", {"fuzz", "attack", "mutate", "calibrate"}},
      {"What was found",
       {"stats", "faults", "report", "compare", "export", "replay", "quality", "transfer", "merge", "check"}},
      {"Mending it", {"select", "repair", "diff"}},
  };
  std::string text =
      "Galvani tests deep neural networks the way a fuzzer tests programs.\n"
      "Usage: galvani VERB [OPTIONS]\n\n"
      "Three commands to begin with:\n"
      "  galvani train lenet5 --data digits -o lenet5.onnx\n"
      "  galvani inspect lenet5.onnx --data digits\n"
      "  galvani fuzz lenet5.onnx --data digits\n";
  for (const auto& [title, verbs] : kGroups) {
    text += "\n" + title + ":\n";
    for (const std::string& verb : verbs) text += fmt::format("  {:<17}{}\n", verb, app.help_of(verb));
  }
  return text +
         "\n'galvani help VERB' shows its options and examples, 'galvani help --json' all of them, -V the version.\n";
}

int run(int argc, char** argv) {
  Common common;
  Verb app("galvani", "Tests deep neural networks the way a fuzzer tests programs.", "galvani " GALVANI_VERSION);
  app.need_verb();
  add_verbs(app, common);
  if (argc == 3 && std::strcmp(argv[1], "help") == 0 && std::strcmp(argv[2], "--json") == 0) {
    print_json(app.declarations(), 1);
    return 0;
  }
  app.overview(overview(app));
  app.parse(argc, argv);
  check_output();
  return common.exit_code;
}

}  // namespace
}  // namespace galvani::cli

namespace galvani::cli {
namespace {

// What a run ends with.
struct Ending {
  int exit_code = 0;
  std::string sentence;  // empty: all is well
};

Ending ending_of(const std::function<int()>& work) {
  auto say = [](log::Level level, const std::string& sentence, int code) {
    log::write(level, sentence);
    return Ending{code, sentence};
  };
  try {
    return {work(), ""};
  } catch (const Error& e) {
    // Who asked to stop made no mistake.
    bool asked = e.code() == ErrorCode::interrupted;
    return say(asked ? log::Level::info : log::Level::error, e.what(), exit_code_of(e.code()));
  } catch (const std::bad_alloc&) {
    return say(log::Level::error, "out of memory", 4);
  } catch (const c10::Error& e) {
    return say(log::Level::error, std::string("LibTorch: ") + e.what_without_backtrace(), 70);
  } catch (const std::exception& e) {
    return say(log::Level::error, e.what(), 70);
  }
}

}  // namespace
}  // namespace galvani::cli

int main(int argc, char** argv) {
  galvani::install_interrupt_handler();
  galvani::set_step_end_handler(galvani::cli::end_step);
  std::unique_ptr<galvani::MpiJob> job;
  galvani::cli::Ending ending = galvani::cli::ending_of([&] {
    job = std::make_unique<galvani::MpiJob>(argc, argv);
    return galvani::cli::run(argc, argv);
  });
  if (job) job->leave(ending.exit_code, ending.sentence);
  job.reset();
  std::cout.flush();
  std::fflush(nullptr);
  // All that is left dies with the process; clearing LibTorch's tables one by one takes longer than many a verb.
  std::_Exit(ending.exit_code);
}
