#include "galvani/base/confine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/courier.h"
#include "galvani/base/descriptor.h"
#include "galvani/base/error.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

// Rights that Debian 12's headers may not name yet; numbers are the kernel's interface and never change.
constexpr std::uint64_t kRefer = 1ULL << 13;
constexpr std::uint64_t kTruncate = 1ULL << 14;
constexpr std::uint64_t kBindTcp = 1ULL << 0;
constexpr std::uint64_t kConnectTcp = 1ULL << 1;
constexpr std::uint64_t kScopeAbstractSockets = 1ULL << 0;
constexpr std::uint64_t kScopeSignals = 1ULL << 1;

// Moving files between folders needs version 2; without it campaigns could not be written.
constexpr int kOldest = 2;
constexpr int kTruncateFrom = 3;
constexpr int kNetworkFrom = 4;
constexpr int kScopesFrom = 6;

struct Ruleset {
  std::uint64_t files;
  std::uint64_t network;
  std::uint64_t scoped;
};

constexpr std::uint64_t kWrites = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                  LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                  LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                  LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                  LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | kRefer;

int landlock_version() {
  return static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

[[noreturn]] void failed(const char* what) {
  fail(ErrorCode::environment, "this process cannot be confined ({}): {}", what, std::strerror(errno));
}

// True: the rule is in. A path that does not exist is nothing to allow.
bool allow(const Descriptor& ruleset, const fs::path& path, std::uint64_t access) {
  Descriptor place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.good()) return false;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = place.get();
  return ::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

// Notes what it makes, outermost first. That it cannot be made shows when something is to be written there.
void make_folder(const fs::path& folder, std::vector<fs::path>& made) {
  std::error_code error;
  std::vector<fs::path> missing;
  for (fs::path at = fs::absolute(folder, error).lexically_normal(); !at.empty() && !fs::exists(at, error);
       at = at.parent_path())
    missing.push_back(at);
  if (fs::create_directories(folder, error)) made.insert(made.end(), missing.rbegin(), missing.rend());
}

}  // namespace

Confined confine(const Confinement& confinement) {
  int version = landlock_version();
  if (version < kOldest)
    return {false, version < 0 ? fmt::format("this kernel has no Landlock ({})", std::strerror(errno))
                               : "this kernel's Landlock is too old"};
  Ruleset rules{kWrites | LANDLOCK_ACCESS_FS_EXECUTE, 0, 0};
  if (version >= kTruncateFrom) rules.files |= kTruncate;
  if (version >= kNetworkFrom) rules.network = kBindTcp | kConnectTcp;
  if (version >= kScopesFrom) rules.scoped = kScopeAbstractSockets | kScopeSignals;
  std::uint64_t writes = rules.files & ~std::uint64_t{LANDLOCK_ACCESS_FS_EXECUTE};
  // A kernel knows the structure up to its own version.
  std::size_t size = version >= kScopesFrom    ? sizeof rules
                     : version >= kNetworkFrom ? offsetof(Ruleset, scoped)
                                               : offsetof(Ruleset, network);
  Descriptor ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size, 0)));
  if (!ruleset.good()) failed("making rules");

  std::vector<fs::path> made;
  for (const fs::path& folder : confinement.folders) {
    make_folder(folder, made);
    std::error_code error;
    if (fs::is_directory(folder, error)) allow(ruleset, folder, writes);
  }
  std::uint64_t open_only = LANDLOCK_ACCESS_FS_WRITE_FILE | (rules.files & kTruncate);
  for (const char* device : {"/dev/null", "/dev/tty"}) allow(ruleset, device, open_only);
  // What is no regular file is opened and written as it is, by this process.
  for (const fs::path& file : confinement.files) {
    std::error_code error;
    fs::file_status status = fs::status(file, error);
    if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
      allow(ruleset, file, open_only);
  }
  courier::start(confinement.files, confinement.places, confinement.folders, made);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) failed("giving up privileges");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) failed("applying rules");
  return {true, fmt::format("Landlock {}: writes beneath {} folders and {} outputs, no programs{}", version,
                            confinement.folders.size(), confinement.files.size() + confinement.places.size(),
                            rules.network != 0 ? ", no network" : "; this kernel cannot close the network")};
}

}  // namespace galvani
