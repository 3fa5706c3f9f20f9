// Start-up matters that make LibTorch fast and keep it inside the machine's memory.
#pragma once

#include <cstdint>
#include <string>

namespace galvani {

// Call once at the start of main, before any tensor exists: malloc keeps large blocks, kernels run on one thread,
// allocations that cannot fit the machine are refused with an Error instead of waking the kernel's OOM killer.
void init_runtime();

struct BlasInfo {
  std::string library;  // path of the shared object that serves sgemm
  bool reference;       // the slow reference implementation
};
BlasInfo find_blas();
// Which of its kernels OpenBLAS runs, such as "Haswell"; "" for another BLAS.
std::string find_blas_kernels();
// Those it should run on this processor instead of the ones it has taken; "" if there are none better.
std::string better_kernels(const std::string& taken);

// While one lives, tensors that this thread makes may not be larger: a bad_input Error says so. At least
// 256 MiB; needs init_runtime.
class TensorLimit {
 public:
  explicit TensorLimit(std::uint64_t bytes);
  ~TensorLimit();
  TensorLimit(const TensorLimit&) = delete;
  TensorLimit& operator=(const TensorLimit&) = delete;

 private:
  std::uint64_t outer_;
};

// Bytes the process may still allocate, by the system's own estimate.
std::uint64_t available_memory();

}  // namespace galvani
