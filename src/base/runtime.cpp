#include "galvani/base/runtime.h"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"

namespace galvani {
namespace {

// Asking the system costs microseconds; smaller blocks are not worth the question.
constexpr std::size_t kLargeAllocation = std::size_t{256} << 20;
// Left for the rest of the machine.
constexpr std::uint64_t kReserve = std::uint64_t{128} << 20;

thread_local std::uint64_t largest_tensor = UINT64_MAX;

// Refuses tensors that cannot fit before the kernel overcommits and kills the process.
class BoundedAllocator final : public at::Allocator {
 public:
  at::DataPtr allocate(std::size_t n) const override {
    if (n >= kLargeAllocation) {
      if (n > largest_tensor)
        bad_input("a tensor of {} is larger than the {} that one may take", format_bytes(n),
                  format_bytes(largest_tensor));
      std::uint64_t available = available_memory();
      if (n + kReserve > available)
        bad_input("a tensor of {} does not fit the {} of memory that are free", format_bytes(n),
                  format_bytes(available));
    }
    return c10::GetDefaultCPUAllocator()->allocate(n);
  }
  at::DeleterFnPtr raw_deleter() const override { return c10::GetDefaultCPUAllocator()->raw_deleter(); }
};

std::uint64_t read_number(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : UINT64_MAX;
}

}  // namespace

TensorLimit::TensorLimit(std::uint64_t bytes) : outer_(largest_tensor) {
  largest_tensor = std::min(outer_, bytes);
}

TensorLimit::~TensorLimit() {
  largest_tensor = outer_;
}

std::uint64_t available_memory() {
  std::uint64_t available = UINT64_MAX;
  std::ifstream meminfo("/proc/meminfo");
  std::string line;
  while (std::getline(meminfo, line)) {
    if (line.rfind("MemAvailable:", 0) == 0) available = std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  }
  std::uint64_t limit = read_number("/sys/fs/cgroup/memory.max");
  std::uint64_t used = read_number("/sys/fs/cgroup/memory.current");
  if (limit != UINT64_MAX && used != UINT64_MAX) available = std::min(available, limit > used ? limit - used : 0);
  return available;
}

BlasInfo find_blas() {
  void* symbol = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {"unknown", false};
  std::error_code ignored;
  std::string path = std::filesystem::canonical(info.dli_fname, ignored).string();
  if (path.empty()) path = info.dli_fname;
  bool fast = path.find("openblas") != std::string::npos || path.find("mkl") != std::string::npos ||
              path.find("blis") != std::string::npos || path.find("atlas") != std::string::npos;
  return {path, !fast};
}

// The kernels that OpenBLAS would take if it knew this processor, "" where it takes the right ones. On a processor
// younger than itself it falls back to those of 2004, which are three times slower.
std::string better_kernels(const std::string& taken) {
  for (const char* modern : {"Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids"}) {
    if (taken == modern) return "";
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return "";
}

std::string find_blas_kernels() {
  auto* name = reinterpret_cast<char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name == nullptr ? "" : name();
}

namespace {

// Before the first product of matrices. Who sets OPENBLAS_CORETYPE has chosen.
void choose_kernels() {
  constexpr const char* kChoice = "OPENBLAS_CORETYPE";
  auto* forget = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_quit"));
  auto* choose = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init"));
  std::string taken = find_blas_kernels();
  if (taken.empty() || forget == nullptr || choose == nullptr || std::getenv(kChoice) != nullptr) return;
  std::string better = better_kernels(taken);
  if (better.empty()) return;
  setenv(kChoice, better.c_str(), 1);
  forget();
  choose();
  unsetenv(kChoice);
}

}  // namespace

void init_runtime() {
  // glibc returns large tensors to the system at every step and faults them in again at the next.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
  at::set_num_threads(1);
  static BoundedAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
  choose_kernels();
  BlasInfo blas = find_blas();
  log::debug("BLAS: {} {}", blas.library, find_blas_kernels());
  if (blas.reference)
    log::warn("{} is the slow reference BLAS; install libopenblas0-openmp to run about ten times faster", blas.library);
}

}  // namespace galvani
