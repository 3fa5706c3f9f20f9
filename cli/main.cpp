#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/limits.h"
#include "galvani/base/log.h"
#include "galvani/base/options.h"
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

// Refuses a mistyped verb by name; CLI11 itself would only say that one is required.
void check_verb(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    std::vector<const CLI::App*> verbs = at->get_subcommands([](const CLI::App*) { return true; });
    if (verbs.empty()) return;
    const CLI::App* next = nullptr;
    std::vector<std::string> names;
    for (const CLI::App* verb : verbs) {
      if (verb->get_name() == argv[i]) next = verb;
      names.push_back(verb->get_name());
    }
    if (next == nullptr) {
      std::string near = nearest_word(argv[i], names);
      bad_usage(
          "there is no verb '{}'{}", printable(argv[i]),
          near.empty() ? fmt::format("; known are {}", fmt::join(names, ", ")) : "; did you mean '" + near + "'?");
    }
    at = next;
  }
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

int run(int argc, char** argv) {
  Common common;
  CLI::App app("Tests deep neural networks the way a fuzzer tests programs.", "galvani");
  app.set_version_flag("--version", "galvani " GALVANI_VERSION);
  app.require_subcommand(1);
  add_check_verb(app, common);
  add_compare_verb(app, common);
  add_cover_verb(app, common);
  add_data_verb(app, common);
  add_export_verb(app, common);
  add_faults_verb(app, common);
  add_fuzz_verb(app, common);
  add_inspect_verb(app, common);
  add_mutate_verb(app, common);
  add_predict_verb(app, common);
  add_profile_verb(app, common);
  add_replay_verb(app, common);
  add_report_verb(app, common);
  add_stats_verb(app, common);
  add_trace_verb(app, common);
  add_train_verb(app, common);
  check_verb(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  check_output();
  return common.exit_code;
}

}  // namespace
}  // namespace galvani::cli

int main(int argc, char** argv) {
  using galvani::log::Level;
  galvani::install_interrupt_handler();
  galvani::set_step_end_handler(galvani::cli::end_step);
  try {
    return galvani::cli::run(argc, argv);
  } catch (const galvani::Error& e) {
    galvani::log::write(Level::error, e.what());
    return galvani::cli::exit_code_of(e.code());
  } catch (const std::bad_alloc&) {
    galvani::log::write(Level::error, "out of memory");
    return 4;
  } catch (const c10::Error& e) {
    galvani::log::write(Level::error, std::string("LibTorch: ") + e.what_without_backtrace());
    return 70;
  } catch (const std::exception& e) {
    galvani::log::write(Level::error, e.what());
    return 70;
  }
}
