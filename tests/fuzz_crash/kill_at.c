// Loaded into a program with LD_PRELOAD: counts the calls that change something in a folder, and kills the program at
// one of them.
//
//   KILL_FOLDER  part of the paths that count
//   KILL_AT      the number of the call at which to die, from 1, before it is done
//   KILL_HALF    set: a write is done by half first
//   KILL_LOG     a file that gets a line with the name of every call that counts
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int counts(const char* path) {
  const char* folder = getenv("KILL_FOLDER");
  return folder != NULL && path != NULL && strstr(path, folder) != NULL;
}

static int fd_counts(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  long n = syscall(SYS_readlink, link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = '\0';
  return counts(path);
}

// The process that was started, not its helpers, and its log, opened before the process gives up the right to write it.
static int log_fd = -1;
static long counted_process = 0;

__attribute__((constructor)) static void begin(void) {
  const char* log = getenv("KILL_LOG");
  counted_process = syscall(SYS_getpid);
  if (log != NULL)
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

// True: this is the call to die at.
static int due(const char* name) {
  static int calls = 0;
  if (syscall(SYS_getpid) != counted_process) return 0;
  int number = __sync_add_and_fetch(&calls, 1);
  if (log_fd >= 0) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s\n", name);
    (void)!syscall(SYS_write, log_fd, line, length);
  }
  const char* at = getenv("KILL_AT");
  return at != NULL && number == atoi(at);
}

static void die(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

static void at(const char* name) {
  if (due(name)) die();
}

static int changes(int flags) {
  return (flags & (O_CREAT | O_TRUNC)) != 0;
}

#define OPEN(name, before, names)                            \
  int name(before const char* path, int flags, ...) {        \
    va_list more;                                            \
    va_start(more, flags);                                   \
    mode_t mode = changes(flags) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                            \
    if (changes(flags) && counts(path)) at("open");          \
    return REAL(name)(names path, flags, mode);              \
  }
#define NOTHING
#define FOLDER_FD int folder,
#define FOLDER_NAME folder,
OPEN(open, NOTHING, NOTHING)
OPEN(open64, NOTHING, NOTHING)
OPEN(openat, FOLDER_FD, FOLDER_NAME)
OPEN(openat64, FOLDER_FD, FOLDER_NAME)

#define MAKE_TEMPORARY(name, more, names) \
  int name(char* path more) {             \
    if (counts(path)) at("open");         \
    return REAL(name)(path names);        \
  }
#define COMMA_FLAGS , int flags
#define COMMA_NAME , flags
MAKE_TEMPORARY(mkstemp, NOTHING, NOTHING)
MAKE_TEMPORARY(mkstemp64, NOTHING, NOTHING)
MAKE_TEMPORARY(mkostemp, COMMA_FLAGS, COMMA_NAME)
MAKE_TEMPORARY(mkostemp64, COMMA_FLAGS, COMMA_NAME)

static int half_write(int fd, const char* name) {
  return fd > 2 && fd_counts(fd) && due(name);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (half_write(fd, "write")) {
    if (getenv("KILL_HALF") != NULL) (void)!syscall(SYS_write, fd, bytes, size / 2);
    die();
  }
  return REAL(write)(fd, bytes, size);
}

#define WRITE_AT(name, offset_type)                                                                     \
  ssize_t name(int fd, const void* bytes, size_t size, offset_type offset) {                            \
    if (half_write(fd, "write")) {                                                                      \
      if (getenv("KILL_HALF") != NULL) (void)!syscall(SYS_pwrite64, fd, bytes, size / 2, (long)offset); \
      die();                                                                                            \
    }                                                                                                   \
    return REAL(name)(fd, bytes, size, offset);                                                         \
  }
WRITE_AT(pwrite, off_t)
WRITE_AT(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec* parts, int count) {
  if (half_write(fd, "write")) die();
  return REAL(writev)(fd, parts, count);
}

#define ON_PATH(name, path, arguments, names, what) \
  int name arguments {                              \
    if (counts(path)) at(what);                     \
    return REAL(name) names;                        \
  }
ON_PATH(unlink, path, (const char* path), (path), "unlink")
ON_PATH(unlinkat, path, (int folder, const char* path, int flags), (folder, path, flags), "unlink")
ON_PATH(remove, path, (const char* path), (path), "unlink")
ON_PATH(rmdir, path, (const char* path), (path), "rmdir")
ON_PATH(mkdir, path, (const char* path, mode_t mode), (path, mode), "mkdir")
ON_PATH(mkdirat, path, (int folder, const char* path, mode_t mode), (folder, path, mode), "mkdir")
ON_PATH(rename, to, (const char* from, const char* to), (from, to), "rename")
ON_PATH(renameat, to, (int a, const char* from, int b, const char* to), (a, from, b, to), "rename")
ON_PATH(renameat2, to, (int a, const char* from, int b, const char* to, unsigned flags), (a, from, b, to, flags),
        "rename")
ON_PATH(link, to, (const char* from, const char* to), (from, to), "link")
ON_PATH(linkat, to, (int a, const char* from, int b, const char* to, int flags), (a, from, b, to, flags), "link")
ON_PATH(symlink, to, (const char* from, const char* to), (from, to), "link")

#define ON_FD(name, arguments, names, what) \
  int name arguments {                      \
    if (fd_counts(fd)) at(what);            \
    return REAL(name) names;                \
  }
ON_FD(ftruncate, (int fd, off_t size), (fd, size), "ftruncate")
ON_FD(ftruncate64, (int fd, off64_t size), (fd, size), "ftruncate")
ON_FD(fallocate, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size), "fallocate")
ON_FD(fallocate64, (int fd, int mode, off64_t offset, off64_t size), (fd, mode, offset, size), "fallocate")
ON_FD(fsync, (int fd), (fd), "fsync")
ON_FD(fdatasync, (int fd), (fd), "fsync")
