#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"
#include "verb.h"

namespace galvani::cli {

void apply(const Common& common) {
  if (common.verbose) log::set_level(log::Level::debug);
  if (common.quiet) log::set_level(log::Level::warning);
  Progress::set_enabled(!common.quiet);
  init_runtime();
  if (common.threads > 0) set_workers(common.threads);
}

CLI::App* make_verb(CLI::App& parent, Common& common, const std::string& name, const std::string& help,
                    const std::string& examples) {
  CLI::App* verb = parent.add_subcommand(name, help);
  verb->footer(examples.empty() ? "" : "Examples:\n" + examples);
  verb->add_option("--seed", common.seed, "seed of everything random")->capture_default_str()->group("Common");
  verb->add_option("--threads", common.threads, "worker threads (default: one per core)")
      ->check(CLI::Range(1, 1024))
      ->group("Common");
  verb->add_flag("--json", common.json, "print the result as JSON")->group("Common");
  verb->add_flag("-q,--quiet", common.quiet, "no progress, warnings only")->group("Common");
  verb->add_flag("-v,--verbose", common.verbose, "say more")->group("Common");
  verb->parse_complete_callback([&common] { apply(common); });
  return verb;
}

namespace {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage: return 2;
    case ErrorCode::bad_input: return 3;
    case ErrorCode::environment: return 4;
    case ErrorCode::interrupted: return 130;
    case ErrorCode::internal: return 70;
  }
  return 70;
}

int run(int argc, char** argv) {
  Common common;
  CLI::App app("Tests deep neural networks the way a fuzzer tests programs.", "galvani");
  app.set_version_flag("--version", "galvani " GALVANI_VERSION);
  app.require_subcommand(1);
  add_data_verb(app, common);
  add_inspect_verb(app, common);
  add_predict_verb(app, common);
  add_train_verb(app, common);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return common.exit_code;
}

}  // namespace
}  // namespace galvani::cli

int main(int argc, char** argv) {
  using galvani::log::Level;
  galvani::install_interrupt_handler();
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
