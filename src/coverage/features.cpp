#include "galvani/coverage/features.h"

#include <algorithm>

namespace galvani {
namespace {

// Beyond this a bit for every feature would take more than 512 MiB.
constexpr std::uint64_t kMostBits = std::uint64_t{1} << 32;

int count_ones(std::uint64_t word) {
  return __builtin_popcountll(word);
}

}  // namespace

FeatureSet::FeatureSet(std::uint64_t universe) : universe_(universe) {
  if (universe_ > 0 && universe_ <= kMostBits) bits_.assign((universe_ + 63) / 64, 0);
}

bool FeatureSet::insert(std::uint64_t id) {
  if (bits_.empty()) {
    bool fresh = hashed_.insert(id).second;
    size_ += fresh ? 1 : 0;
    return fresh;
  }
  std::uint64_t& word = bits_[id / 64];
  std::uint64_t bit = std::uint64_t{1} << (id % 64);
  if ((word & bit) != 0) return false;
  word |= bit;
  ++size_;
  return true;
}

bool FeatureSet::contains(std::uint64_t id) const {
  if (bits_.empty()) return hashed_.count(id) != 0;
  return id < universe_ && (bits_[id / 64] >> (id % 64) & 1) != 0;
}

void FeatureSet::clear() {
  std::fill(bits_.begin(), bits_.end(), 0);
  hashed_.clear();
  size_ = 0;
}

void FeatureSet::merge(const FeatureSet& other) {
  if (bits_.empty()) {
    hashed_.insert(other.hashed_.begin(), other.hashed_.end());
    size_ = hashed_.size();
    return;
  }
  size_ = 0;
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    bits_[i] |= other.bits_[i];
    size_ += static_cast<std::uint64_t>(count_ones(bits_[i]));
  }
}

void FeatureSet::for_each(const std::function<void(std::uint64_t)>& visit) const {
  if (bits_.empty()) {
    std::vector<std::uint64_t> sorted(hashed_.begin(), hashed_.end());
    std::sort(sorted.begin(), sorted.end());
    for (std::uint64_t id : sorted) visit(id);
    return;
  }
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    for (std::uint64_t word = bits_[i]; word != 0; word &= word - 1)
      visit(i * 64 + static_cast<std::uint64_t>(__builtin_ctzll(word)));
  }
}

std::uint64_t FeatureSet::count_missing_from(const FeatureSet& other) const {
  std::uint64_t missing = 0;
  if (bits_.empty()) {
    for (std::uint64_t id : hashed_) missing += other.contains(id) ? 0 : 1;
    return missing;
  }
  for (std::size_t i = 0; i < bits_.size(); ++i)
    missing += static_cast<std::uint64_t>(count_ones(bits_[i] & ~other.bits_[i]));
  return missing;
}

void FeatureSet::save(ArchiveWriter& out) const {
  out.put(universe_);
  if (!bits_.empty()) {
    out.put(bits_);
    return;
  }
  std::vector<std::uint64_t> ids;
  ids.reserve(hashed_.size());
  for_each([&](std::uint64_t id) { ids.push_back(id); });
  out.put(ids);
}

void FeatureSet::load(ArchiveReader& in) {
  if (in.get<std::uint64_t>() != universe_) in.broken("counts other features than it says");
  if (bits_.empty()) {
    auto ids = in.get_vector<std::uint64_t>();
    hashed_ = {ids.begin(), ids.end()};
    size_ = hashed_.size();
    if (size_ != ids.size()) in.broken("holds a feature twice");
    if (universe_ > 0 && !ids.empty() && *std::max_element(ids.begin(), ids.end()) >= universe_)
      in.broken("holds features that do not exist");
    return;
  }
  auto bits = in.get_vector<std::uint64_t>(bits_.size());
  if (universe_ % 64 != 0 && (bits.back() >> (universe_ % 64)) != 0) in.broken("holds features that do not exist");
  bits_ = std::move(bits);
  size_ = 0;
  for (std::uint64_t word : bits_) size_ += static_cast<std::uint64_t>(count_ones(word));
}

}  // namespace galvani
