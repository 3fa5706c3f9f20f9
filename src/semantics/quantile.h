// An upper quantile of a stream of numbers in one pass and bounded memory.
//
// Values are counted in bins whose edges lie 2^-8 apart, relative to the value: the upper bits of the number itself. So
// counts are exact, the state does not depend on the order of the values, and two states merge to that of the whole. A
// quantile is given as the upper edge of its bin: at most 2^-8 (0.4%) above the true one, relative to it, and the share
// of values above it is known exactly. Of the powers of two that occur, with their sign, the 32 highest are told apart;
// what is lower counts as one bin.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace galvani {

struct Quantile {
  float value = 0;   // at least `q` of the values are not larger
  double above = 0;  // the share that is larger
};

class QuantileSketch {
 public:
  QuantileSketch();
  // REQUIRES finite values.
  void add(const float* values, std::int64_t n);
  void merge(const QuantileSketch& other);

  std::uint64_t size() const { return size_; }
  float least() const { return least_; }
  float largest() const { return largest_; }
  // REQUIRES 0 <= q <= 1 and at least one value.
  Quantile at(double q) const;

 private:
  static constexpr std::uint32_t kPages = 512;  // sign and exponent, in the order of the numbers
  static constexpr std::uint32_t kBins = 256;   // of a page
  static constexpr std::size_t kMost = 32;      // pages that are told apart

  std::uint64_t* page(std::uint32_t top);
  void forget_below(std::uint32_t number);

  std::array<std::int16_t, kPages> place_;  // of each page among the counts; -1: none
  std::vector<std::uint64_t> counts_;
  std::uint64_t low_ = 0;    // values of pages below the first
  std::uint32_t first_ = 0;  // the lowest page that is told apart
  std::uint64_t size_ = 0;
  float least_ = 0;
  float largest_ = 0;
};

}  // namespace galvani
