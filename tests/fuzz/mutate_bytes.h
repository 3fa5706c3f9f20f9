// Random damage to a file's bytes: what a bad disk, a broken writer or an attacker does to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "galvani/base/rng.h"

namespace galvani {

// One to eight of: bit flips, random bytes, boundary values written over 8, 16, 32 or 64 bits in either byte order,
// truncation, insertion, deletion, a stretch repeated or moved.
inline std::string mutate(const std::string& bytes, Rng& rng) {
  std::string result = bytes;
  auto position = [&] { return static_cast<std::size_t>(rng.below(result.size() + 1)); };
  // Headers are where damage matters most, so half of the time it is done near the start or the end.
  auto byte_at = [&]() -> std::size_t {
    std::uint64_t n = result.size();
    std::uint64_t window = std::min<std::uint64_t>(n, 64);
    switch (rng.below(4)) {
      case 0:
        return static_cast<std::size_t>(rng.below(window));
      case 1:
        return static_cast<std::size_t>(n - 1 - rng.below(window));
      default:
        return static_cast<std::size_t>(rng.below(n));
    }
  };
  auto stretch = [&](std::size_t from) {
    return std::min(result.size() - from, static_cast<std::size_t>(1) << rng.below(9));
  };
  std::uint64_t rounds = std::uint64_t{1} << rng.below(4);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (result.empty()) {
      result += static_cast<char>(rng.below(256));
      continue;
    }
    switch (rng.below(8)) {
      case 0:
        result[byte_at()] ^= static_cast<char>(1U << rng.below(8));
        break;
      case 1:
        result[byte_at()] = static_cast<char>(rng.below(256));
        break;
      case 2:
      case 3: {
        constexpr std::uint64_t kBoundaries[] = {0,
                                                 1,
                                                 2,
                                                 0x7f,
                                                 0x80,
                                                 0xff,
                                                 0x7fff,
                                                 0x8000,
                                                 0xffff,
                                                 0x7fffffff,
                                                 0x80000000,
                                                 0xffffffff,
                                                 0xfffffffe,
                                                 0x10000000,
                                                 0x7fffffffffffffff,
                                                 0xffffffffffffffff};
        std::uint64_t value = kBoundaries[rng.below(std::size(kBoundaries))];
        std::size_t width = std::size_t{1} << rng.below(4);
        bool big_endian = rng.chance(0.5);
        std::size_t at = byte_at();
        for (std::size_t i = 0; i < width && at + i < result.size(); ++i) {
          std::size_t shift = 8 * (big_endian ? width - 1 - i : i);
          result[at + i] = static_cast<char>(value >> shift & 0xff);
        }
        break;
      }
      case 4:
        result.resize(position());
        break;
      case 5: {
        std::string inserted(static_cast<std::size_t>(1) << rng.below(6), '\0');
        for (char& c : inserted) c = static_cast<char>(rng.below(256));
        result.insert(position(), inserted);
        break;
      }
      case 6: {
        std::size_t from = byte_at();
        result.erase(from, stretch(from));
        break;
      }
      default: {
        std::size_t from = byte_at();
        std::string copy = result.substr(from, stretch(from));
        result.insert(position(), copy);
        break;
      }
    }
  }
  return result;
}

}  // namespace galvani
