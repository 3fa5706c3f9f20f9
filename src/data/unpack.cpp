#include "unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kBlock = 64 << 10;

struct ReadDeleter {
  void operator()(::archive* a) const { archive_read_free(a); }
};
struct WriteDeleter {
  void operator()(::archive* a) const { archive_write_free(a); }
};
struct EntryDeleter {
  void operator()(::archive_entry* e) const { archive_entry_free(e); }
};
using Reader = std::unique_ptr<::archive, ReadDeleter>;

std::string reason(::archive* a) {
  const char* text = archive_error_string(a);
  return text == nullptr ? "the data is damaged" : printable(text);
}

// A warning from libarchive (a wrong checksum, an odd field) is damage too.
void require_ok(int status, ::archive* a, const fs::path& path) {
  if (status != ARCHIVE_OK) bad_input("{}: cannot be unpacked: {}", path.string(), reason(a));
}

// The file that libarchive stands at.
class CurrentEntry : public ArchiveEntry {
 public:
  // `left` goes down by what is read.
  CurrentEntry(::archive* a, ::archive_entry* entry, const fs::path& path, std::uint64_t& left, std::uint64_t limit)
      : ArchiveEntry(archive_entry_pathname(entry)), a_(a), path_(path), left_(left), limit_(limit) {
    if (archive_entry_size_is_set(entry) == 0) return;
    claimed_ = static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(entry)));
    if (claimed_ > left_) too_much();
  }

  std::size_t read(char* out, std::size_t n) override {
    std::size_t done = 0;
    while (done < n) {
      la_ssize_t got = archive_read_data(a_, out + done, n - done);
      if (got == 0) break;
      if (got < 0) bad_input("{}: '{}' in it cannot be unpacked: {}", path_.string(), printable(name()), reason(a_));
      if (static_cast<std::uint64_t>(got) > left_) too_much();
      left_ -= static_cast<std::uint64_t>(got);
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  std::string all() {
    std::string bytes;
    require_memory(path_.string(), claimed_ * 2);
    bytes.reserve(claimed_);
    std::string block(kBlock, '\0');
    while (std::size_t n = read(block.data(), block.size())) bytes.append(block, 0, n);
    return bytes;
  }

 private:
  [[noreturn]] void too_much() const { bad_input("{}: unpacks to more than {}", path_.string(), format_bytes(limit_)); }

  ::archive* a_;
  const fs::path& path_;
  std::uint64_t& left_;
  std::uint64_t limit_;
  std::uint64_t claimed_ = 0;
};

// Calls `take` with a CurrentEntry.
template <class Take>
void walk_archive(const fs::path& path, std::uint64_t limit, const std::function<bool(const std::string&)>& wanted,
                  const Take& take) {
  Reader reader(archive_read_new());
  ::archive* a = reader.get();
  archive_read_support_filter_gzip(a);
  archive_read_support_format_zip(a);
  archive_read_support_format_tar(a);
  require_ok(archive_read_open_filename(a, path.c_str(), kBlock), a, path);
  std::uint64_t left = limit;
  while (true) {
    ::archive_entry* entry = nullptr;
    int status = archive_read_next_header(a, &entry);
    if (status == ARCHIVE_EOF) return;
    require_ok(status, a, path);
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr || archive_entry_filetype(entry) != AE_IFREG || !wanted(name)) continue;
    CurrentEntry current(a, entry, path, left, limit);
    take(current);
  }
}

la_ssize_t append_to_string(::archive*, void* target, const void* data, std::size_t n) {
  static_cast<std::string*>(target)->append(static_cast<const char*>(data), n);
  return static_cast<la_ssize_t>(n);
}

}  // namespace

struct GzipReader::Impl {
  fs::path path;
  gzFile file = nullptr;
};

GzipReader::GzipReader(const fs::path& path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->file = gzopen(path.c_str(), "rb");
  if (impl_->file == nullptr) bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
}

GzipReader::~GzipReader() {
  gzclose(impl_->file);
}

std::size_t GzipReader::read(char* out, std::size_t n) {
  std::size_t done = 0;
  while (done < n) {
    int got = gzread(impl_->file, out + done, static_cast<unsigned>(std::min<std::size_t>(n - done, 1 << 30)));
    int error = Z_OK;
    gzerror(impl_->file, &error);
    if (got < 0 || error != Z_OK) bad_input("{}: cannot be unpacked: the gzip data is damaged", impl_->path.string());
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  // A file cut short is only noticed at its end, where zlib says that more was to come.
  if (done < n && gzeof(impl_->file) == 0)
    bad_input("{}: cannot be unpacked: the gzip data is damaged", impl_->path.string());
  return done;
}

bool is_gzip(const fs::path& path) {
  std::string head = read_head(path, 3);
  return head == "\x1f\x8b\x08";
}

std::string read_maybe_gzip(const fs::path& path, std::uint64_t limit) {
  if (!is_gzip(path)) return read_file(path, limit);
  GzipReader reader(path);
  std::string bytes;
  std::string block(kBlock, '\0');
  while (std::size_t n = reader.read(block.data(), block.size())) {
    if (bytes.size() + n > limit) bad_input("{}: unpacks to more than {}", path.string(), format_bytes(limit));
    bytes.append(block.data(), n);
  }
  return bytes;
}

void read_archive(const fs::path& path, std::uint64_t limit, const std::function<bool(const std::string&)>& wanted,
                  const std::function<void(const std::string&, std::string)>& take) {
  walk_archive(path, limit, wanted, [&](CurrentEntry& entry) { take(entry.name(), entry.all()); });
}

void stream_archive(const fs::path& path, std::uint64_t limit, const std::function<bool(const std::string&)>& wanted,
                    const std::function<void(ArchiveEntry&)>& take) {
  walk_archive(path, limit, wanted, [&](CurrentEntry& entry) { take(entry); });
}

std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& entries, bool deflate) {
  std::string result;
  std::unique_ptr<::archive, WriteDeleter> writer(archive_write_new());
  ::archive* a = writer.get();
  auto check = [&](int status) {
    if (status != ARCHIVE_OK) fail(ErrorCode::environment, "a zip archive cannot be made: {}", reason(a));
  };
  check(archive_write_set_format_zip(a));
  check(deflate ? archive_write_zip_set_compression_deflate(a) : archive_write_zip_set_compression_store(a));
  check(archive_write_set_bytes_in_last_block(a, 1));
  check(archive_write_open(a, &result, nullptr, append_to_string, nullptr));
  constexpr std::time_t kFirstZipDay = 315619200;  // 1980-01-02: a fixed date, so equal content gives equal bytes
  for (const auto& [name, bytes] : entries) {
    std::unique_ptr<::archive_entry, EntryDeleter> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_mtime(entry.get(), kFirstZipDay, 0);
    check(archive_write_header(a, entry.get()));
    for (std::size_t done = 0; done < bytes.size();) {
      la_ssize_t n = archive_write_data(a, bytes.data() + done, bytes.size() - done);
      if (n <= 0) check(ARCHIVE_FATAL);
      done += static_cast<std::size_t>(n);
    }
  }
  check(archive_write_close(a));
  return result;
}

}  // namespace galvani
