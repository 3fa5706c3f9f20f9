#include "galvani/coverage/minimise.h"

#include <queue>

#include "galvani/base/error.h"
#include "galvani/base/rng.h"

namespace galvani {

std::size_t FeatureTable::Hash::operator()(const std::pair<std::uint64_t, std::uint64_t>& key) const {
  return mix(key.first, key.second);
}

void FeatureTable::add(std::int64_t first, const Features& features, std::uint64_t family) {
  auto start = static_cast<std::size_t>(first);
  if (rows_.size() < start + features.ends.size()) rows_.resize(start + features.ends.size());
  for (std::size_t i = 0; i < features.ends.size(); ++i) {
    std::vector<std::uint32_t>& row = rows_[start + i];
    for (std::size_t at = features.begin_of(i); at < features.ends[i]; ++at) {
      if (numbers_.size() == UINT32_MAX) fail(ErrorCode::environment, "too many features to minimise");
      auto number = static_cast<std::uint32_t>(numbers_.size());
      row.push_back(numbers_.try_emplace({family, features.ids[at]}, number).first->second);
    }
  }
}

std::vector<KeptInput> minimise(const FeatureTable& table) {
  struct Entry {
    std::uint64_t gain;  // at most this
    std::int64_t input;
    bool operator<(const Entry& other) const { return gain != other.gain ? gain < other.gain : input > other.input; }
  };
  std::vector<bool> covered(table.features(), false);
  auto gain_of = [&](std::int64_t input) {
    std::uint64_t gain = 0;
    for (std::uint32_t feature : table.row(input)) gain += covered[feature] ? 0 : 1;
    return gain;
  };
  std::priority_queue<Entry> queue;
  for (std::int64_t i = 0; i < table.inputs(); ++i) {
    if (!table.row(i).empty()) queue.push({table.row(i).size(), i});
  }
  std::vector<KeptInput> kept;
  while (!queue.empty()) {
    Entry top = queue.top();
    queue.pop();
    std::uint64_t gain = gain_of(top.input);
    if (gain == 0) continue;
    if (gain < top.gain) {
      queue.push({gain, top.input});
      continue;
    }
    for (std::uint32_t feature : table.row(top.input)) covered[feature] = true;
    kept.push_back({top.input, gain});
  }
  return kept;
}

}  // namespace galvani
