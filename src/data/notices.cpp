#include "notices.h"

#include <mutex>
#include <set>
#include <string>

namespace galvani::notices {

void say_once(log::Level level, const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> said;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!said.insert(text).second) return;
  }
  log::write(level, text);
}

}  // namespace galvani::notices
