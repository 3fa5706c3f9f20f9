#include "galvani/base/runtime.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

TEST(Runtime, KnowsTheFreeMemory) {
  EXPECT_GT(available_memory(), std::uint64_t{1} << 20);
  EXPECT_LT(available_memory(), std::uint64_t{1} << 50);
}

TEST(Runtime, FindsTheBlasThatServesThisProcess) {
  BlasInfo blas = find_blas();
  EXPECT_NE(blas.library, "");
}

TEST(Runtime, BlasRunsTheBestKernelsThereAre) {
  EXPECT_EQ(better_kernels("SkylakeX"), "");
  EXPECT_EQ(better_kernels("Zen"), "");
  bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  EXPECT_EQ(better_kernels("Prescott").empty(), !avx2);
  at::Tensor a = at::rand({70, 90}), b = at::rand({90, 50});
  at::Tensor before = at::mm(a, b);
  init_runtime();
  EXPECT_TRUE(at::allclose(at::mm(a, b), before));
  std::string taken = find_blas_kernels();
  if (taken.empty() || std::getenv("OPENBLAS_CORETYPE") != nullptr) GTEST_SKIP() << "nothing to choose";
  EXPECT_EQ(better_kernels(taken), "");
}

TEST(Runtime, RefusesATensorThatCannotFit) {
  init_runtime();
  EXPECT_EQ(at::get_num_threads(), 1);
  auto too_many = static_cast<std::int64_t>(available_memory() * 2);
  for (bool in_worker : {false, true}) {
    try {
      if (in_worker) {
        WorkerPool pool(2);
        pool.run(2, [&](std::int64_t, int) { at::empty({too_many}, at::kByte); });
      } else {
        at::empty({too_many}, at::kByte);
      }
      ADD_FAILURE() << "in worker: " << in_worker;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input);
      EXPECT_NE(std::string(e.what()).find("does not fit"), std::string::npos) << e.what();
    }
  }
  {
    TensorLimit limit(std::uint64_t{300} << 20);
    EXPECT_EQ(at::empty({std::int64_t{299} << 20}, at::kByte).numel(), std::int64_t{299} << 20);
    EXPECT_THROW(at::empty({std::int64_t{301} << 20}, at::kByte), Error);
    // A wider limit inside a narrower one does not widen it.
    TensorLimit wider(std::uint64_t{900} << 20);
    EXPECT_THROW(at::empty({std::int64_t{301} << 20}, at::kByte), Error);
  }
  EXPECT_EQ(at::empty({std::int64_t{301} << 20}, at::kByte).numel(), std::int64_t{301} << 20);
  // Ordinary and large tensors that do fit still work.
  EXPECT_EQ(at::ones({1000}).sum().item<float>(), 1000);
  EXPECT_EQ(at::empty({std::int64_t{257} << 20}, at::kByte).numel(), std::int64_t{257} << 20);
}

}  // namespace
}  // namespace galvani
