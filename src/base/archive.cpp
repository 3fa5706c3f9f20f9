#include "galvani/base/archive.h"

#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

// The first byte is not text, the line ends show a transfer that changed them.
constexpr std::string_view kMagic = "\x89GALVANI\r\n";
constexpr std::size_t kHashLength = 64;

}  // namespace

std::string_view ArchiveReader::take(std::size_t n) {
  if (n > bytes_.size()) broken("is cut short");
  std::string_view taken = bytes_.substr(0, n);
  bytes_.remove_prefix(n);
  return taken;
}

std::string ArchiveReader::get_text(std::size_t most) {
  auto n = get<std::uint64_t>();
  if (n > most) broken("holds a text that is too long");
  return std::string(take(n));
}

void ArchiveReader::expect_end() const {
  if (!bytes_.empty()) broken("has bytes after its end");
}

void ArchiveReader::broken(std::string_view what) const {
  bad_input("{}: {}; it is damaged, so make it again", file_, what);
}

std::string sealed_bytes(std::string_view kind, std::uint32_t version, std::string_view payload) {
  ArchiveWriter head;
  head.put(kind);
  head.put(version);
  head.put(payload);
  std::string bytes = std::string(kMagic) + head.bytes();
  return bytes + sha256(bytes);
}

void write_sealed(const std::filesystem::path& path, std::string_view kind, std::uint32_t version,
                  std::string_view payload) {
  write_file(path, sealed_bytes(kind, version, payload));
}

std::string read_sealed(const std::filesystem::path& path, std::string_view kind, std::uint32_t version,
                        std::uint32_t* oldest) {
  std::string bytes = read_file(path);
  std::string name = path.string();
  if (bytes.size() < kMagic.size() || std::string_view(bytes).substr(0, kMagic.size()) != kMagic)
    bad_input("{}: is not a {} file", name, kind);
  if (bytes.size() < kMagic.size() + kHashLength) bad_input("{}: is cut short", name);
  std::string_view body = std::string_view(bytes).substr(0, bytes.size() - kHashLength);
  if (sha256(body) != std::string_view(bytes).substr(body.size()))
    bad_input("{}: its content does not fit its checksum; it is damaged, so make it again", name);
  ArchiveReader reader(body.substr(kMagic.size()), name);
  std::string found_kind = reader.get_text();
  if (found_kind != kind) bad_input("{}: is a {} file, not a {} file", name, printable(found_kind), kind);
  auto found_version = reader.get<std::uint32_t>();
  if (found_version > version || found_version < (oldest == nullptr ? version : *oldest))
    bad_input("{}: is written in version {} of the format, this program reads version {}; make it again", name,
              found_version, version);
  if (oldest != nullptr) *oldest = found_version;
  std::string payload = reader.get_text(ArchiveReader::kAnyCount);
  reader.expect_end();
  return payload;
}

}  // namespace galvani
