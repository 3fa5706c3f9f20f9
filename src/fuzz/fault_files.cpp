#include "fuzz/fault_files.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fuzz/images.h"
#include "galvani/base/descriptor.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/fuzz/records.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void failed(const fs::path& path, const char* what) {
  fail(ErrorCode::environment, "{}: cannot be {}: {}", path.string(), what, std::strerror(errno));
}

// Nothing is synchronised with the disk: a file that a power failure took is made again from its lineage.
void write_bytes(const fs::path& path, std::string_view bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.good()) failed(path, "written");
  for (std::size_t done = 0; done < bytes.size();) {
    ssize_t n = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) failed(path, "written");
    done += static_cast<std::size_t>(n);
  }
}

// False: there is no such file, or it is longer than expected.
bool read_bytes(const fs::path& path, std::size_t size, std::string& bytes) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC, 0666));
  if (!file.good()) return false;
  bytes.resize(size + 1);
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failed(path, "read");
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return done <= size;
}

}  // namespace

std::string fault_name(std::int64_t id, std::int64_t label, std::int64_t predicted, const SampleType& type) {
  std::string said = predicted == kNotANumber ? "nan" : std::to_string(predicted);
  return fmt::format("{:08}-{}-{}{}", id, label, said, type.extension());
}

std::string fault_file(std::int64_t id, std::int64_t label, std::int64_t predicted, const SampleType& type) {
  return "faults/" + fault_name(id, label, predicted, type);
}

std::string encode_mutant(const void* values, const SampleType& type) {
  constexpr int kLevel = 1;
  return type.encode(values, kLevel);
}

FaultFiles::FaultFiles(const fs::path& campaign) : campaign_(campaign), staging_(campaign) {}

void FaultFiles::stage(const FaultRecord& fault, std::string_view bytes) const {
  fs::path path = staging_.path(fs::path(fault.file).filename().string());
  thread_local std::string found;
  write_bytes(path, bytes);
  if (!read_bytes(path, bytes.size(), found)) failed(path, "read back");
  if (found != bytes || pixel_hash(decode_sample(found, path.string()).values) != fault.sha256)
    fail(ErrorCode::environment, "{}: does not hold what was written to it; is the disk all right?", path.string());
}

bool FaultFiles::lost(const FaultRecord& fault) const {
  std::error_code error;
  std::uintmax_t size = fs::file_size(campaign_ / fault.file, error);
  return error ? error == std::errc::no_such_file_or_directory : size == 0;
}

void FaultFiles::restore(const FaultRecord& fault, std::string_view bytes) const {
  stage(fault, bytes);
  staging_.replace(fault.file);
}

bool FaultFiles::settle(const std::string& name, const FaultRecord& fault) const {
  if (fault.file != (fs::path("faults") / name).string()) return false;
  try {
    fs::path path = staging_.path(name);
    if (pixel_hash(decode_sample(read_file(path), path.string()).values) != fault.sha256) return false;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::bad_input) throw;
    return false;
  }
  place(fault);
  return true;
}

}  // namespace galvani
