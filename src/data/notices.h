// What people are told about data as they are found, each thing once in a process, however often they are opened.
#pragma once

#include <utility>

#include "galvani/base/log.h"

namespace galvani::notices {

void say_once(log::Level level, const std::string& text);

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  say_once(log::Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  say_once(log::Level::warning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace galvani::notices
