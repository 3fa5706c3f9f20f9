#include "base/temporary_name.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace galvani {
namespace {

// One a thread that writes; a name that finds no room is only removed in the usual way.
constexpr std::size_t kSlots = 2048;
constexpr std::size_t kLongestStem = 200;  // names end at 255 bytes

// Whoever takes a pointer out of its slot owns it, so a handler never sees memory that was freed.
std::array<std::atomic<char*>, kSlots> names;
static_assert(std::atomic<char*>::is_always_lock_free);
std::atomic<pid_t> owner{0};  // a forked child must leave its parent's files alone

std::size_t remember(const std::string& path) {
  static const int at_exit = std::atexit([] { remove_temporary_names(); });
  static_cast<void>(at_exit);
  owner = ::getpid();
  char* copy = ::strdup(path.c_str());
  for (std::size_t i = 0; copy != nullptr && i < kSlots; ++i) {
    char* empty = nullptr;
    if (names[i].compare_exchange_strong(empty, copy)) return i;
  }
  std::free(copy);
  return kSlots;
}

std::string random_letters() {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::array<unsigned char, 8> bytes{};
  (void)!::getrandom(bytes.data(), bytes.size(), 0);
  std::string letters;
  for (unsigned char byte : bytes) letters += kLetters[byte % (sizeof kLetters - 1)];
  return letters;
}

}  // namespace

TemporaryName::TemporaryName(const std::filesystem::path& target)
    : path_((target.parent_path() / ("." + target.filename().string().substr(0, kLongestStem) + "." + random_letters()))
                .string()),
      slot_(remember(path_)) {}

void TemporaryName::release() {
  released_ = true;
}

TemporaryName::~TemporaryName() {
  if (!released_) ::unlink(path_.c_str());
  if (slot_ < kSlots) std::free(names[slot_].exchange(nullptr));
}

void remove_temporary_names() noexcept {
  if (owner != ::getpid()) return;
  for (std::atomic<char*>& slot : names) {
    // Not freed: this may run inside malloc.
    if (char* name = slot.exchange(nullptr)) ::unlink(name);
  }
}

}  // namespace galvani
