// Made-up traces for tests.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "galvani/coverage/criterion.h"
#include "galvani/coverage/profile.h"

namespace galvani::testing {

// Blocks of these widths, called "a", "b", ...; each the output of a dense layer of `features` inputs with known
// weights.
TraceLayout layout_of(const std::vector<std::int64_t>& widths, std::int64_t classes = 3, std::int64_t features = 4);

// Repeatable traces with everything a criterion may need: smooth, correlated, classes from the values.
Traces made_up(const TraceLayout& layout, std::int64_t n, std::uint64_t seed);

// Given values, one row per input; predicted classes 0 unless given.
Traces given(const std::vector<std::vector<float>>& rows, const std::vector<std::int64_t>& predicted = {});

Traces rows_of(const Traces& traces, std::int64_t first, std::int64_t count);
Traces reordered(const Traces& traces, const std::vector<std::int64_t>& order);

// Learned from the given traces.
std::shared_ptr<const Profile> profile_of(const TraceLayout& layout, const std::string& criteria, const Traces& traces);

std::string state_of(const Criterion& criterion);  // as saved

}  // namespace galvani::testing
