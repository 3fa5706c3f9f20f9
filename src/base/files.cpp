#include "galvani/base/files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void update(const void* data, std::size_t n) { EVP_DigestUpdate(context_.get(), data, n); }
  std::string finish() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &length);
    constexpr const char* kDigits = "0123456789abcdef";
    std::string hex;
    hex.reserve(std::size_t{2} * length);
    for (unsigned int i = 0; i < length; ++i) {
      hex += kDigits[digest[i] >> 4];
      hex += kDigits[digest[i] & 15];
    }
    return hex;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void write_failed(const fs::path& path) {
  fail(ErrorCode::environment, "{}: cannot be written: {}", path.string(), std::strerror(errno));
}

}  // namespace

std::string read_file(const fs::path& path, std::uint64_t limit) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) bad_input("{}: there is no such file", path.string());
  if (fs::is_directory(status)) bad_input("{}: is a folder, not a file", path.string());
  // A pipe or device has no size, so its length could not be bounded before reading.
  if (!fs::is_regular_file(status)) bad_input("{}: is not a regular file", path.string());
  std::uintmax_t size = fs::file_size(path, error);
  if (error) bad_input("{}: cannot be read: {}", path.string(), error.message());
  if (size > limit)
    bad_input("{}: is {}, more than the {} accepted", path.string(), format_bytes(size), format_bytes(limit));
  std::ifstream file(path, std::ios::binary);
  if (!file) bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(file.gcount()) != size) bad_input("{}: ended while being read", path.string());
  return bytes;
}

void write_file(const fs::path& path, std::string_view bytes) {
  fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  std::string temporary = (folder / ("." + path.filename().string() + ".XXXXXX")).string();
  Descriptor file{::mkstemp(temporary.data())};
  if (file.fd < 0) write_failed(path);
  bool good = true;
  for (std::size_t done = 0; good && done < bytes.size();) {
    ssize_t n = ::write(file.fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) done += static_cast<std::size_t>(n);
  }
  mode_t mask = ::umask(0);
  ::umask(mask);
  good = good && ::fchmod(file.fd, 0666 & ~mask) == 0 && ::fsync(file.fd) == 0 &&
         ::rename(temporary.c_str(), path.c_str()) == 0;
  if (!good) {
    int reason = errno;
    ::unlink(temporary.c_str());
    errno = reason;
    write_failed(path);
  }
}

fs::path cache_folder() {
  if (const char* own = std::getenv("GALVANI_CACHE"); own != nullptr && *own != '\0') return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') return fs::path(xdg) / "galvani";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache/galvani";
  return fs::temp_directory_path() / "galvani-cache";
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.finish();
}

std::string sha256_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  Sha256 hash;
  std::string buffer(1 << 20, '\0');
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.update(buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  return hash.finish();
}

TemporaryFolder::TemporaryFolder(const std::string& prefix) {
  std::string pattern = (fs::temp_directory_path() / (prefix + ".XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) write_failed(pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace galvani
