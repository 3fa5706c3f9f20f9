// What coverage counts, as integers: guidance, minimisation, selection and merging share this one representation.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

#include "galvani/base/archive.h"

namespace galvani {

// The features of each input of a batch, one list after the other.
struct Features {
  std::vector<std::uint64_t> ids;
  std::vector<std::size_t> ends;  // ids of input i are [ends[i-1], ends[i])

  void finish_input() { ends.push_back(ids.size()); }
  std::size_t begin_of(std::size_t i) const { return i == 0 ? 0 : ends[i - 1]; }
};

// A set of features: one bit each where the universe is known and small enough, a hash set otherwise.
class FeatureSet {
 public:
  explicit FeatureSet(std::uint64_t universe = 0);  // 0: any 64-bit number may be a feature

  bool insert(std::uint64_t id);  // true if it was not there
  bool contains(std::uint64_t id) const;
  std::uint64_t size() const { return size_; }
  std::uint64_t universe() const { return universe_; }
  void clear();
  void merge(const FeatureSet& other);
  // In ascending order, whatever the order of insertion was.
  void for_each(const std::function<void(std::uint64_t)>& visit) const;
  std::uint64_t count_missing_from(const FeatureSet& other) const;  // how many of ours the other lacks

  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);  // REQUIRES the same universe; refuses features outside it

 private:
  std::uint64_t universe_;
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> bits_;
  std::unordered_set<std::uint64_t> hashed_;
};

}  // namespace galvani
