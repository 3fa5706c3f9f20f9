// Messages for people, on standard error. Standard output belongs to results.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace galvani::log {

enum class Level { debug, info, warning, error };

void set_level(Level least);
Level level();
void write(Level level, const std::string& text);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::debug) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace galvani::log
