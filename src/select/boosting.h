// Gradient-boosted trees that rank (XGBoost).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace galvani {

// Usage error where this build has no XGBoost.
class BoostedRanker {
 public:
  // features [n, width] row by row; relevant [n]: those that should come first.
  BoostedRanker(const std::vector<float>& features, const std::vector<float>& relevant, std::int64_t rounds,
                std::uint64_t seed);
  ~BoostedRanker();
  BoostedRanker(const BoostedRanker&) = delete;
  BoostedRanker& operator=(const BoostedRanker&) = delete;

  std::vector<float> score(const std::vector<float>& features, std::int64_t n) const;

  static bool available();
  static void require();

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace galvani
