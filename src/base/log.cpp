#include "galvani/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>

#include "galvani/base/error.h"
#include "galvani/base/terminal.h"

namespace galvani::log {
namespace {

std::atomic<Level> least_level{Level::info};

spdlog::color_mode mode(Colour wanted) {
  switch (wanted) {
    case Colour::never:
      return spdlog::color_mode::never;
    case Colour::automatic:
      return spdlog::color_mode::automatic;
    case Colour::always:
      return spdlog::color_mode::always;
  }
  return spdlog::color_mode::never;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = spdlog::stderr_color_mt("galvani", mode(wanted_colour()));
    made->set_level(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level least) {
  least_level = least;
}
Level level() {
  return least_level;
}

void write(Level level, const std::string& text) {
  if (level < least_level) return;
  // One line that cannot drive a terminal, whatever names of files are in it.
  std::string message = text;
  std::replace(message.begin(), message.end(), '\n', ' ');
  message = printable(message, kWholeText);
  // A plain message needs no prefix; one that wants attention says what it is.
  logger().set_pattern(level == Level::info ? "%v" : "%^%l:%$ %v");
  switch (level) {
    case Level::debug:
      logger().debug("{}", message);
      break;
    case Level::info:
      logger().info("{}", message);
      break;
    case Level::warning:
      logger().warn("{}", message);
      break;
    case Level::error:
      logger().error("{}", message);
      break;
  }
}

}  // namespace galvani::log
