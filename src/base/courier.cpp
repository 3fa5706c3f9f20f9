#include "base/courier.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "galvani/base/error.h"
#include "galvani/base/output_file.h"

namespace galvani::courier {
namespace fs = std::filesystem;
namespace {

enum class Order : char { open, commit, discard, remove };

struct Letter {
  Order order;
  std::size_t index;
};

struct Output {
  fs::path path;
  Writes writes;
};

struct Reply {
  bool good;
  char reason[1000];  // if not good
};

// The confined process's end.
struct Line {
  int socket = -1;
  std::vector<Output> files;      // absolute
  std::vector<fs::path> folders;  // absolute
};
Line line;

fs::path full_path(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::absolute(path, error).lexically_normal();
  return error ? path : result;
}

// A reply, with a descriptor if there is one.
void send_reply(int socket, const Reply& reply, int fd) {
  iovec part{const_cast<Reply*>(&reply), sizeof reply};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  (void)!::sendmsg(socket, &message, MSG_NOSIGNAL);
}

// The other end's answer; -1: it is gone.
int receive_reply(Reply& reply) {
  iovec part{&reply, sizeof reply};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  int fd = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  while ((n = ::recvmsg(line.socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (n != static_cast<ssize_t>(sizeof reply)) return -1;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
  if (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

// The courier's whole life. It ends with the process it serves, which closes the socket.
[[noreturn]] void serve(int socket, const std::vector<Output>& files, const std::vector<fs::path>& made) {
  // What is meant for the process it serves must not end the courier first.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP}) ::signal(signal, SIG_IGN);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  std::map<std::size_t, std::unique_ptr<OutputFile>> open;
  Letter letter{};
  while (true) {
    ssize_t n = ::recv(socket, &letter, sizeof letter, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n != static_cast<ssize_t>(sizeof letter)) break;
    Reply reply{true, ""};
    int fd = -1;
    try {
      if (letter.index >= files.size()) fail(ErrorCode::internal, "there is no such output");
      std::unique_ptr<OutputFile>& file = open[letter.index];
      if (letter.order == Order::remove) {
        fs::remove(files[letter.index].path);
      } else if (letter.order == Order::open) {
        file = std::make_unique<OutputFile>(files[letter.index].path, files[letter.index].writes);
        fd = file->descriptor();
      } else {
        if (letter.order == Order::commit && file) file->commit();
        file.reset();
      }
    } catch (const std::exception& e) {
      reply.good = false;
      std::strncpy(reply.reason, e.what(), sizeof reply.reason - 1);
    }
    send_reply(socket, reply, fd);
  }
  open.clear();
  // Innermost first.
  for (auto folder = made.rbegin(); folder != made.rend(); ++folder) ::rmdir(folder->c_str());
  ::_exit(0);
}

int ask(Order order, std::size_t index, const fs::path& path) {
  Letter letter{order, index};
  Reply reply{false, ""};
  bool sent = ::send(line.socket, &letter, sizeof letter, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof letter);
  int fd = sent ? receive_reply(reply) : -1;
  if (reply.good) return fd;
  if (reply.reason[0] != '\0') throw Error(ErrorCode::environment, reply.reason);
  fail(ErrorCode::environment, "{}: cannot be written: the process that writes outputs is gone", path.string());
}

}  // namespace

void start(const std::vector<fs::path>& files, const std::vector<fs::path>& places,
           const std::vector<fs::path>& folders, const std::vector<fs::path>& made) {
  if (files.empty() && places.empty() && made.empty()) return;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    fail(ErrorCode::environment, "no socket to be had: {}", std::strerror(errno));
  for (const fs::path& file : files) line.files.push_back({full_path(file), Writes::through});
  for (const fs::path& place : places) line.files.push_back({full_path(place), Writes::over});
  for (const fs::path& folder : folders) line.folders.push_back(full_path(folder));
  pid_t child = ::fork();
  if (child < 0) fail(ErrorCode::environment, "no process to be had: {}", std::strerror(errno));
  if (child == 0) {
    // A child of its own, so that nobody has to wait for it.
    pid_t grandchild = ::fork();
    if (grandchild != 0) ::_exit(grandchild < 0 ? 1 : 0);
    ::close(ends[0]);
    serve(ends[1], line.files, made);
  }
  ::close(ends[1]);
  line.socket = ends[0];
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) fail(ErrorCode::environment, "no process to be had");
}

namespace {

// Its number, if the courier writes it and this process may not.
std::optional<std::size_t> index_of(const fs::path& path) {
  if (line.socket < 0) return std::nullopt;
  fs::path wanted = full_path(path);
  auto inside = [&](const fs::path& folder) {
    auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), wanted.begin(), wanted.end());
    return in_folder == folder.end() || (*in_folder).empty();
  };
  if (std::any_of(line.folders.begin(), line.folders.end(), inside)) return std::nullopt;
  auto found =
      std::find_if(line.files.begin(), line.files.end(), [&](const Output& file) { return file.path == wanted; });
  if (found == line.files.end()) return std::nullopt;
  return static_cast<std::size_t>(found - line.files.begin());
}

}  // namespace

bool remove(const fs::path& path) {
  std::optional<std::size_t> index = index_of(path);
  if (index) ask(Order::remove, *index, path);
  return index.has_value();
}

std::unique_ptr<Parcel> Parcel::begin(const fs::path& path) {
  std::optional<std::size_t> index = index_of(path);
  if (!index) return nullptr;
  return std::unique_ptr<Parcel>(new Parcel(*index, ask(Order::open, *index, path)));
}

Parcel::~Parcel() {
  if (!open_) return;
  try {
    ask(Order::discard, index_, line.files[index_].path);
  } catch (const Error&) {
    // The courier is gone, and what it had in the making with it.
  }
}

void Parcel::commit() {
  open_ = false;
  ask(Order::commit, index_, line.files[index_].path);
}

}  // namespace galvani::courier
