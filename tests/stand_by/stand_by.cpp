// Saves the end-to-end tests what LibTorch and its three hundred libraries take to start: loaded in front of the
// program (LD_PRELOAD), this stands by before main() and forks a process for every call that it is sent. What is run is
// the program itself, with the arguments, folder, environment and files of the call.
//
// A call comes over the socket whose number is in GALVANI_STAND_BY: a message with the descriptors of its standard
// input, output and error, which is the length of what follows; then texts that each end with a zero: the folder, the
// number of arguments, these, and the environment. The answer is the process's number, and in the end how it ended, as
// waitpid() says. With GALVANI_OBEYS in its environment a process of root's obeys permissions, as other users' do.
#include <dlfcn.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Main = int (*)(int, char**, char**);
Main program = nullptr;

bool read_all(int from, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    ssize_t n = read(from, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// False at the end of all calls.
bool receive(int socket, std::vector<char>& text, int (&files)[3]) {
  std::uint32_t size = 0;
  iovec part{&size, sizeof size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof files)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_WAITALL) != sizeof size) return false;
  cmsghdr* header = CMSG_FIRSTHDR(&message);  // NOLINT(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return false;
  std::memcpy(files, CMSG_DATA(header), sizeof files);
  text.resize(size);
  return read_all(socket, text.data(), size);
}

void obey_permissions() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (syscall(SYS_capget, &header, sets) != 0) _exit(125);
  sets[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
  sets[0].permitted &= sets[0].effective;
  if (syscall(SYS_capset, &header, sets) != 0) _exit(125);
}

[[noreturn]] void become(std::vector<char>& text, const int (&files)[3]) {
  for (int i = 0; i < 3; ++i) dup2(files[i], i);
  for (int file : files) {
    if (file > 2) close(file);
  }
  std::vector<char*> words;
  for (std::size_t at = 0; at < text.size(); at += std::strlen(text.data() + at) + 1) words.push_back(text.data() + at);
  if (words.size() < 2 || chdir(words[0]) != 0) _exit(125);
  auto count = static_cast<std::size_t>(std::strtol(words[1], nullptr, 10));
  clearenv();
  for (std::size_t i = 2 + count; i < words.size(); ++i) putenv(words[i]);
  if (std::getenv("GALVANI_OBEYS") != nullptr) obey_permissions();
  std::vector<char*> arguments(words.begin() + 2, words.begin() + 2 + static_cast<std::ptrdiff_t>(count));
  arguments.push_back(nullptr);
  std::exit(program(static_cast<int>(count), arguments.data(), environ));
}

int stand_by(int argc, char** argv, char** environment) {
  const char* number = std::getenv("GALVANI_STAND_BY");
  if (number == nullptr) return program(argc, argv, environment);
  auto socket = static_cast<int>(std::strtol(number, nullptr, 10));
  std::vector<char> text;
  int files[3];
  while (receive(socket, text, files)) {
    std::int32_t process = fork();
    if (process == 0) {
      close(socket);
      become(text, files);
    }
    for (int file : files) close(file);
    std::int32_t end = 0;
    if (write(socket, &process, sizeof process) != sizeof process) break;
    waitpid(process, &end, 0);
    if (write(socket, &end, sizeof end) != sizeof end) break;
  }
  _exit(0);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the system's name
extern "C" int __libc_start_main(Main own, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
                                 void* stack_end) {
  program = own;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): the system's own macro
  auto start = reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(stand_by, argc, argv, init, fini, rtld_fini, stack_end);
}
