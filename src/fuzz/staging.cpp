#include "fuzz/staging.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/sample.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// False: there is a file already.
bool move_unless_there(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS) {  // a file system that cannot; linking does not replace either
    if (::link(from.c_str(), to.c_str()) == 0) {
      ::unlink(from.c_str());
      return true;
    }
  }
  if (errno == EEXIST) return false;
  fail(ErrorCode::environment, "{}: cannot be written: {}", to.string(), std::strerror(errno));
}

}  // namespace

Staging::Staging(const fs::path& campaign) : campaign_(campaign), folder_(campaign / "state" / "new") {}

void Staging::place(const fs::path& target) const {
  fs::path made = path(target.filename().string());
  fs::path to = campaign_ / target;
  if (move_unless_there(made, to)) return;
  std::error_code error;
  bool same = fs::is_regular_file(fs::symlink_status(to, error)) && fs::file_size(to, error) == fs::file_size(made) &&
              read_file(to) == read_file(made);
  if (!same)
    fail(ErrorCode::environment,
         "{}: is not what the campaign has to write there, and is left alone; move it away, and the same command goes "
         "on",
         to.string());
  discard(made.filename().string());
}

void Staging::replace(const fs::path& target) const {
  fs::path to = campaign_ / target;
  if (std::rename(path(target.filename().string()).c_str(), to.c_str()) != 0)
    fail(ErrorCode::environment, "{}: cannot be written: {}", to.string(), std::strerror(errno));
}

namespace {

bool has_extension_of_inputs(std::string_view name) {
  constexpr SampleKind kKinds[] = {SampleKind::image, SampleKind::audio};
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](SampleKind kind) {
    std::string_view end = SampleType{kind, {}, 0}.extension();
    return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
  });
}

}  // namespace

bool Staging::is_ours(std::string_view name) {
  // write_file writes .name.XXXXXX first.
  constexpr std::size_t kSuffix = 7;
  if (starts_with(name, ".") && name.size() > kSuffix + 1 && name[name.size() - kSuffix] == '.')
    name = name.substr(1, name.size() - kSuffix - 1);
  auto digits = static_cast<std::size_t>(
      std::find_if(name.begin(), name.end(), [](char c) { return c < '0' || c > '9'; }) - name.begin());
  bool fault = digits >= 8 && digits < name.size() && name[digits] == '-' && has_extension_of_inputs(name);
  return fault || starts_with(name, "snapshot-") || name == "seal" || name == "profile" || name == "campaign.toml";
}

std::vector<std::string> Staging::left() const {
  std::vector<std::string> result;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored)) {
    std::string name = entry.path().filename().string();
    if (is_ours(name) && fs::is_regular_file(entry.symlink_status(ignored))) result.push_back(std::move(name));
  }
  return result;
}

void Staging::discard(const std::string& name) const {
  std::error_code error;
  fs::remove(path(name), error);
  if (error) fail(ErrorCode::environment, "{}: cannot be removed: {}", path(name).string(), error.message());
}

}  // namespace galvani
