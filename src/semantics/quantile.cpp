#include "semantics/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace galvani {
namespace {

constexpr int kShift = 15;          // bits of a number that its bin does not tell
constexpr double kRounding = 1e-6;  // of the number of values that may lie above

// Unsigned numbers in the order of the floats.
std::uint32_t ordered(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}

float number(std::uint32_t key) {
  std::uint32_t bits = (key >> 31) != 0 ? key & 0x7fffffffU : ~key;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

QuantileSketch::QuantileSketch() {
  place_.fill(-1);
}

void QuantileSketch::add(const float* values, std::int64_t n) {
  if (size_ == 0 && n > 0) least_ = largest_ = values[0];
  for (std::int64_t i = 0; i < n; ++i) {
    float value = values[i] == 0 ? 0.0F : values[i];  // -0 is 0
    least_ = std::min(least_, value);
    largest_ = std::max(largest_, value);
    std::uint32_t key = ordered(value);
    std::uint32_t top = key >> (kShift + 8);
    std::int16_t place = place_[top];
    std::uint64_t* bins = place >= 0 ? counts_.data() + static_cast<std::size_t>(place) * kBins : page(top);
    if (bins == nullptr) {
      ++low_;
    } else {
      ++bins[(key >> kShift) & (kBins - 1)];
    }
  }
  size_ += static_cast<std::uint64_t>(n);
}

// The counts of a page, made if there are none; null if it is too low.
std::uint64_t* QuantileSketch::page(std::uint32_t top) {
  if (top >= first_ && place_[top] < 0) {
    place_[top] = static_cast<std::int16_t>(counts_.size() / kBins);
    counts_.resize(counts_.size() + kBins);
    if (counts_.size() / kBins > kMost) {
      std::uint32_t lowest = first_;
      while (place_[lowest] < 0) ++lowest;
      forget_below(lowest + 1);
    }
  }
  return place_[top] < 0 ? nullptr : counts_.data() + static_cast<std::size_t>(place_[top]) * kBins;
}

// What is low depends on which pages there are, not on when they came.
void QuantileSketch::forget_below(std::uint32_t number) {
  for (; first_ < number; ++first_) {
    std::int16_t gone = place_[first_];
    if (gone < 0) continue;
    auto begin = counts_.begin() + static_cast<std::ptrdiff_t>(gone) * kBins;
    low_ = std::accumulate(begin, begin + kBins, low_);
    counts_.erase(begin, begin + kBins);
    place_[first_] = -1;
    for (std::int16_t& place : place_) {
      if (place > gone) --place;
    }
  }
}

void QuantileSketch::merge(const QuantileSketch& other) {
  if (other.size_ == 0) return;
  least_ = size_ == 0 ? other.least_ : std::min(least_, other.least_);
  largest_ = size_ == 0 ? other.largest_ : std::max(largest_, other.largest_);
  size_ += other.size_;
  low_ += other.low_;
  forget_below(other.first_);
  for (std::uint32_t top = other.first_; top < kPages; ++top) {
    if (other.place_[top] < 0) continue;
    const std::uint64_t* theirs = other.counts_.data() + static_cast<std::size_t>(other.place_[top]) * kBins;
    std::uint64_t* ours = page(top);
    for (std::uint32_t bin = 0; bin < kBins; ++bin) (ours == nullptr ? low_ : ours[bin]) += theirs[bin];
  }
}

Quantile QuantileSketch::at(double q) const {
  auto most_above = static_cast<std::uint64_t>(std::floor((1 - q) * static_cast<double>(size_) + kRounding));
  std::uint64_t above = 0;
  auto result = [&](std::uint32_t past_highest) {
    double share = static_cast<double>(above) / static_cast<double>(size_);
    return Quantile{std::min(number((past_highest << kShift) - 1), largest_), share};
  };
  for (std::uint32_t top = kPages; top-- > first_;) {
    if (place_[top] < 0) continue;
    const std::uint64_t* bins = counts_.data() + static_cast<std::size_t>(place_[top]) * kBins;
    for (std::uint32_t bin = kBins; bin-- > 0;) {
      if (above + bins[bin] > most_above) return result((top << 8 | bin) + 1);
      above += bins[bin];
    }
  }
  return low_ > 0 ? result(first_ << 8) : Quantile{least_, static_cast<double>(above) / static_cast<double>(size_)};
}

}  // namespace galvani
