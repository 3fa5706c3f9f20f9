// Counter-based random streams (Philox4x32-10).
//
// A stream is a pure function of (seed, path of ids), so what an item draws never depends on the thread, the order of
// work or the clock: derive a child stream per item and draw from it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace galvani {

// Ten rounds of Philox4x32 (Salmon et al. 2011).
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0);

  // A stream of its own for an item; independent of how much was drawn from this one.
  Rng derive(std::uint64_t id) const;
  Rng derive(std::initializer_list<std::uint64_t> ids) const;
  Rng derive(std::string_view purpose) const;

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  double uniform();                                           // [0, 1)
  double uniform(double low, double high);                    // [low, high)
  std::uint64_t below(std::uint64_t n);                       // [0, n), unbiased; REQUIRES n > 0
  std::int64_t between(std::int64_t low, std::int64_t high);  // [low, high]
  double normal();                                            // mean 0, standard deviation 1
  bool chance(double p);

  void fill_uniform(float* out, std::size_t n);  // [0, 1)
  void fill_normal(float* out, std::size_t n);

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  // k distinct indices of [0, n) in drawn order; REQUIRES k <= n.
  std::vector<std::int64_t> sample(std::int64_t n, std::int64_t k);

  std::uint64_t seed() const { return seed_; }
  std::uint64_t stream() const { return stream_; }

  // For code that wants a standard uniform random bit generator.
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xffffffffU; }
  result_type operator()() { return next_u32(); }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t block_ = 0;
  std::array<std::uint32_t, 4> buffer_{};
  int used_ = 4;
};

// A well-mixed 64-bit hash of two numbers, for deriving seeds and stream ids.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

}  // namespace galvani
