// Errors, interrupts, threads: what every call shares.
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <mutex>

#include "convert.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"
#include "galvani/base/signal_stack.h"

namespace galvani::python {
namespace {

std::recursive_mutex& work_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

// How deep the thread that works is in work.
int depth = 0;
bool worked = false;    // this process has threads of ours
bool orphaned = false;  // it is a copy of one that had, by fork, which copies no threads
// This thread runs Python code on behalf of work.
thread_local bool in_callback = false;

void on_interrupt(int signal) {
  request_interrupt(signal);
}

// Python delivers signals to its main thread, which is that of the process.
bool on_main_thread() {
  return ::gettid() == ::getpid();
}

}  // namespace

// What lasts from the first piece of work to its end.
struct Work::Outermost {
  int threads = at::get_num_threads();
  bool main = on_main_thread();
  struct sigaction before {};

  Outermost() {
    clear_interrupt();
    at::set_num_threads(1);
    use_signal_stack();  // for Python's handlers, too
    if (main) before = handle_signal(SIGINT, on_interrupt);
  }
  ~Outermost() {
    if (main) sigaction(SIGINT, &before, nullptr);
    at::set_num_threads(threads);
  }
};

Work::Work() {
  if (orphaned)
    bad_usage(
        "galvani has worked in the process that this one was forked from, and its threads are not here: start "
        "processes "
        "by spawn, as multiprocessing.get_context('spawn') does, or before the first call");
  released_.emplace();
  // A worker that calls Python works for the thread that holds the mutex and waits for it.
  if (in_callback && !work_mutex().try_lock()) return;
  if (!in_callback) work_mutex().lock();
  locked_ = true;
  worked = true;
  if (depth++ == 0) outermost_ = std::make_unique<Outermost>();
}

Work::~Work() {
  bool late = false;
  if (locked_) {
    --depth;
    if (outermost_) {
      late = interrupted() && std::uncaught_exceptions() == 0;
      clear_interrupt();
      outermost_.reset();
    }
    work_mutex().unlock();
  }
  released_.reset();
  // Ctrl-C came when there was nothing left to stop: it is Python's to handle.
  if (late) PyErr_SetInterrupt();
}

Callback::Callback() : outer_(in_callback) {
  in_callback = true;
}

Callback::~Callback() {
  in_callback = outer_;
}

namespace {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "UsageError";
    case ErrorCode::bad_input:
      return "InputError";
    case ErrorCode::environment:
      return "MachineError";
    default:
      return "InternalError";
  }
}

void raise(ErrorCode code, const char* sentence) {
  if (code == ErrorCode::interrupted) {
    PyErr_SetString(PyExc_KeyboardInterrupt, sentence);
    return;
  }
  py::object type = py::module_::import("galvani.errors").attr(name_of(code));
  // What is no UTF-8 in a path is shown as '?'.
  PyErr_SetString(type.ptr(), printable(sentence, kWholeText).c_str());
}

void set_log_level(const std::string& name) {
  static const std::vector<std::pair<std::string, log::Level>> levels = {{"debug", log::Level::debug},
                                                                         {"info", log::Level::info},
                                                                         {"warning", log::Level::warning},
                                                                         {"error", log::Level::error}};
  for (const auto& [known, level] : levels) {
    if (known == name) return log::set_level(level);
  }
  bad_usage("'{}' is no level of the log: take debug, info, warning or error", printable(name));
}

}  // namespace

void bind_work(py::module_& module) {
  pthread_atfork(nullptr, nullptr, [] { orphaned = worked; });
  module.attr("__version__") = GALVANI_VERSION;
  int threads = at::get_num_threads();
  init_runtime();
  at::set_num_threads(threads);
  log::set_level(log::Level::warning);
  Progress::set_enabled(false);
  py::register_exception_translator(
      [](std::exception_ptr pointer) {  // NOLINT(performance-unnecessary-value-param): pybind11's type
        try {
          if (pointer) std::rethrow_exception(pointer);
        } catch (const Error& e) {
          raise(e.code(), e.what());
        } catch (const c10::Error& e) {
          raise(ErrorCode::internal, (std::string("LibTorch: ") + e.what_without_backtrace()).c_str());
        }
      });
  module.def("log_level", set_log_level);
  module.def("progress", [](bool shown) { Progress::set_enabled(shown); });
  module.def("threads", [](int n) {
    if (n < 1 || n > 1024) bad_usage("there can be 1 to 1024 worker threads, not {}", n);
    Work work;
    set_workers(n);
  });
  module.def("workers", [] { return workers().size(); });
  module.def("request_interrupt", [] { request_interrupt(SIGINT); });
}

}  // namespace galvani::python

PYBIND11_MODULE(_galvani, module) {
  using namespace galvani::python;  // NOLINT(google-build-using-namespace): this function's alone
  bind_work(module);
  bind_data(module);
  bind_network(module);
  bind_campaign(module);
  bind_components(module);
  bind_verbs(module);
}
