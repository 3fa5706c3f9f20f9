// Some of many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace galvani::cli {

// Up to `most` places of n, spread evenly; 0: all.
inline std::vector<std::int64_t> spread_rows(std::int64_t n, std::int64_t most) {
  std::int64_t count = most == 0 ? n : std::min(n, most);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(i * n / count);
  return rows;
}

}  // namespace galvani::cli
