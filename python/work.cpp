// Errors, interrupts, threads: what every call shares.
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

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

bool may_be_value(const std::string& word) {
  static const std::set<std::string> kWords = {"fit", "exact", "pad", "nhwc", "nchw", "rgb", "bgr", "model"};
  bool number = !word.empty() && word.find_first_of("0123456789") != std::string::npos &&
                word.find_first_not_of("0123456789.,-") == std::string::npos && word.back() != ',' &&
                word.back() != '.';
  return number || kWords.count(word) != 0;
}

// Sentences name flags of the command line; here options are keyword arguments: --by-class is by_class, and --resize
// fit is resize='fit'. What stands between backquotes is a command.
std::string with_keywords(const std::string& sentence) {
  static const std::set<std::string> kOfPython = {"as", "with", "in", "is", "from", "import", "for", "if", "not", "or"};
  std::string result;
  bool command = false;
  for (std::size_t i = 0; i < sentence.size();) {
    if (sentence[i] == '`') command = !command;
    bool begins = !command && (i == 0 || std::strchr(" (:;,'", sentence[i - 1]) != nullptr);
    bool output = begins && sentence.compare(i, 2, "-o") == 0 &&
                  (i + 2 == sentence.size() || std::strchr(" ,;:)", sentence[i + 2]) != nullptr);
    bool flag = begins && sentence.compare(i, 2, "--") == 0 && i + 2 < sentence.size() &&
                std::islower(static_cast<unsigned char>(sentence[i + 2])) != 0;
    if (!output && !flag) {
      result += sentence[i++];
      continue;
    }
    std::size_t end =
        output ? i + 2 : std::min(sentence.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", i + 2), sentence.size());
    std::string name = output ? "output" : sentence.substr(i + 2, end - i - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    result += name + (kOfPython.count(name) != 0 ? "_" : "");
    i = end;
    if (i >= sentence.size() || sentence[i] != ' ') continue;
    std::size_t word_end = std::min(sentence.find_first_of(" ;:)'", i + 1), sentence.size());
    std::string word = sentence.substr(i + 1, word_end - i - 1);
    if (!may_be_value(word)) continue;
    bool number = std::isdigit(static_cast<unsigned char>(word.back())) != 0 && word.find(',') == std::string::npos;
    result += number ? "=" + word : "='" + word + "'";
    i = word_end;
  }
  return result;
}

void raise(ErrorCode code, const char* sentence) {
  if (code == ErrorCode::interrupted) {
    PyErr_SetString(PyExc_KeyboardInterrupt, sentence);
    return;
  }
  py::object type = py::module_::import("galvani.errors").attr(name_of(code));
  // What is no UTF-8 in a path is shown as '?'.
  PyErr_SetString(type.ptr(), printable(with_keywords(sentence), kWholeText).c_str());
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
