#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"

namespace galvani {
namespace {

constexpr std::size_t kMaxOutput = 1 << 20;
constexpr int kPollMilliseconds = 200;

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Collects what the child prints until it closes its end; asks it to stop when the user asked us to.
std::string read_output(int fd, pid_t child) {
  std::string output;
  char buffer[4096];
  while (true) {
    if (interrupted()) {
      ::kill(child, SIGTERM);
      return output;
    }
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, kPollMilliseconds) <= 0) continue;
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return output;
    if (output.size() < kMaxOutput) output.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace

bool program_exists(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

ProgramResult run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(ErrorCode::environment, "no pipe: {}", std::strerror(errno));
  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(actions.get(), folder.c_str());
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  int error = ::posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    fail(ErrorCode::environment, "{} cannot be started: {}", arguments[0], std::strerror(error));
  }
  ProgramResult result;
  result.output = read_output(ends[0], child);
  ::close(ends[0]);
  result.exit_code = wait_for(child);
  check_interrupt();
  return result;
}

}  // namespace galvani
