#include "galvani/base/rng.h"

#include <cmath>
#include <unordered_map>

#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// The finaliser of SplitMix64: every input bit reaches every output bit.
std::uint64_t scramble(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

float to_unit_float(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return scramble(scramble(a) ^ (b * 0xd6e8feb86659fd93ULL + 1));
}

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

Rng::Rng(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

Rng Rng::derive(std::uint64_t id) const {
  return Rng(seed_, mix(stream_, id));
}

Rng Rng::derive(std::initializer_list<std::uint64_t> ids) const {
  std::uint64_t stream = stream_;
  for (std::uint64_t id : ids) stream = mix(stream, id);
  return Rng(seed_, stream);
}

Rng Rng::derive(std::string_view purpose) const {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return derive(hash);
}

std::uint32_t Rng::next_u32() {
  if (used_ == 4) {
    buffer_ = philox4x32({static_cast<std::uint32_t>(block_), static_cast<std::uint32_t>(block_ >> 32),
                          static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                         {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    ++block_;
    used_ = 0;
  }
  return buffer_[static_cast<std::size_t>(used_++)];
}

std::uint64_t Rng::next_u64() {
  std::uint64_t high = next_u32();
  return high << 32 | next_u32();
}

double Rng::uniform() {
  return static_cast<double>(next_u64() >> 11) * 0x1p-53;
}
double Rng::uniform(double low, double high) {
  return low + (high - low) * uniform();
}

std::uint64_t Rng::below(std::uint64_t n) {
  if (n == 0) fail(ErrorCode::internal, "a random choice among nothing");
  std::uint64_t reject = (0 - n) % n;  // 2^64 mod n: drawing below it would favour small results
  std::uint64_t draw = next_u64();
  while (draw < reject) draw = next_u64();
  return draw % n;
}

std::int64_t Rng::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
}

double Rng::normal() {
  double u = 1.0 - uniform();  // (0, 1]: its logarithm is finite
  return std::sqrt(-2.0 * std::log(u)) * std::cos(kTwoPi * uniform());
}

bool Rng::chance(double p) {
  return uniform() < p;
}

void Rng::fill_uniform(float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = to_unit_float(next_u32());
}

void Rng::fill_normal(float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 2) {
    float radius = std::sqrt(-2.0F * std::log(1.0F - to_unit_float(next_u32())));
    float angle = static_cast<float>(kTwoPi) * to_unit_float(next_u32());
    out[i] = radius * std::cos(angle);
    if (i + 1 < n) out[i + 1] = radius * std::sin(angle);
  }
}

std::vector<std::int64_t> Rng::sample(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) fail(ErrorCode::internal, "cannot draw {} of {} without repetition", k, n);
  // Fisher-Yates on an imagined array 0..n-1 that only stores the entries that moved.
  std::unordered_map<std::int64_t, std::int64_t> moved;
  auto at = [&](std::int64_t i) {
    auto it = moved.find(i);
    return it == moved.end() ? i : it->second;
  };
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < k; ++i) {
    std::int64_t j = between(i, n - 1);
    result.push_back(at(j));
    moved[j] = at(i);
  }
  return result;
}

}  // namespace galvani
