// One exception type for everything a user can be told about.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace galvani {

enum class ErrorCode {
  usage,        // the command line or an option is wrong
  bad_input,    // a file's content is wrong: truncated, hostile, of the wrong shape
  environment,  // the machine said no: disk full, folder read-only, package manager missing
  interrupted,  // Ctrl-C, SIGTERM or SIGHUP
  internal,     // a mistake of ours
};

// The message is one sentence that names the file or option and, where there is one, the remedy.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::bad_input, format, std::forward<Args>(args)...);
}
template <class... Args>
[[noreturn]] void bad_usage(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::usage, format, std::forward<Args>(args)...);
}

// What is printed of text that came from a file: what drives a terminal or is no UTF-8 becomes '?', and it is cut to a
// readable length (in bytes).
std::string printable(std::string_view text, std::size_t most = 80);
constexpr std::size_t kWholeText = static_cast<std::size_t>(-1);

}  // namespace galvani
