// One number for every test, from its values and those of its original, on all workers.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "galvani/base/parallel.h"
#include "galvani/quality/metric.h"

namespace galvani {

// of(test, original), both numbers of T as `type` lays them out.
template <class T, class Of>
std::vector<double> each_test_as(const TestBatch& batch, const Of& of) {
  at::Tensor tests = batch.tests.contiguous(), originals = batch.originals.contiguous();
  auto values = static_cast<std::int64_t>(batch.type.values());
  std::vector<double> result(static_cast<std::size_t>(batch.size()));
  workers().run(batch.size(), [&](std::int64_t i, int) {
    result[static_cast<std::size_t>(i)] = of(tests.data_ptr<T>() + i * values, originals.data_ptr<T>() + i * values);
  });
  return result;
}

// `of` takes pointers to bytes and to 16-bit numbers.
template <class Of>
std::vector<double> each_test(const TestBatch& batch, const Of& of) {
  if (batch.type.kind == SampleKind::image) return each_test_as<std::uint8_t>(batch, of);
  return each_test_as<std::int16_t>(batch, of);
}

}  // namespace galvani
