#include "galvani/base/files.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "galvani/base/error.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace fs = std::filesystem;

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
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

fs::path cache_folder() {
  if (const char* own = std::getenv("GALVANI_CACHE"); own != nullptr && *own != '\0') return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') return fs::path(xdg) / "galvani";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache/galvani";
  return fs::temp_directory_path() / "galvani-cache";
}

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  EVP_DigestInit_ex(context_->digest.get(), EVP_sha256(), nullptr);
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(context_->digest.get(), bytes.data(), bytes.size());
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(context_->digest.get(), digest, &length);
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(std::size_t{2} * length);
  for (unsigned int i = 0; i < length; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string sha256_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  Sha256 hash;
  std::string buffer(1 << 20, '\0');
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.update(std::string_view(buffer).substr(0, static_cast<std::size_t>(file.gcount())));
  }
  if (file.bad()) bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  return hash.finish();
}

TemporaryFolder::TemporaryFolder(const std::string& prefix) {
  std::string pattern = (fs::temp_directory_path() / (prefix + ".XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    fail(ErrorCode::environment, "{}: cannot be written: {}", pattern, std::strerror(errno));
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace galvani
