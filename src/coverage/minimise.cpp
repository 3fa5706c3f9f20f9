#include "galvani/coverage/minimise.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

namespace {

// The inputs of every feature, one feature behind the other.
class InputsByFeature {
 public:
  explicit InputsByFeature(const FeatureTable& table) : ends_(table.features() + 1, 0) {
    for (std::int64_t i = 0; i < table.inputs(); ++i) {
      for (std::uint32_t feature : table.row(i)) ++ends_[feature + 1];
    }
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    inputs_.resize(ends_.back());
    std::vector<std::size_t> next(ends_.begin(), ends_.end() - 1);
    for (std::int64_t i = 0; i < table.inputs(); ++i) {
      for (std::uint32_t feature : table.row(i)) inputs_[next[feature]++] = static_cast<std::uint32_t>(i);
    }
  }
  const std::uint32_t* begin(std::uint32_t feature) const { return inputs_.data() + ends_[feature]; }
  const std::uint32_t* end(std::uint32_t feature) const { return inputs_.data() + ends_[feature + 1]; }

 private:
  std::vector<std::size_t> ends_;
  std::vector<std::uint32_t> inputs_;
};

}  // namespace

std::vector<KeptInput> minimise(const FeatureTable& table) {
  if (table.inputs() > UINT32_MAX) fail(ErrorCode::environment, "too many inputs to minimise");
  InputsByFeature inputs(table);
  auto size_of = [&](std::size_t input) { return table.row(static_cast<std::int64_t>(input)).size(); };
  auto n = static_cast<std::size_t>(table.inputs());
  std::vector<std::size_t> gains(n);
  std::vector<std::vector<std::uint32_t>> of_gain(1);  // inputs that add so much, or did when they were put there
  for (std::size_t i = 0; i < n; ++i) {
    gains[i] = size_of(i);
    if (gains[i] >= of_gain.size()) of_gain.resize(gains[i] + 1);
    of_gain[gains[i]].push_back(static_cast<std::uint32_t>(i));
  }
  std::vector<char> covered(table.features(), 0);
  std::vector<KeptInput> kept;
  // Gains never grow: nothing comes to those of a gain any more once they are looked at.
  for (std::size_t gain = of_gain.size() - 1; gain > 0; --gain) {
    std::vector<std::uint32_t> some = std::move(of_gain[gain]);
    std::sort(some.begin(), some.end());
    for (std::uint32_t input : some) {
      if (gains[input] < gain) {
        of_gain[gains[input]].push_back(input);
        continue;
      }
      kept.push_back({input, gain});
      for (std::uint32_t feature : table.row(input)) {
        if (std::exchange(covered[feature], 1) != 0) continue;
        for (const std::uint32_t* other = inputs.begin(feature); other != inputs.end(feature); ++other) --gains[*other];
      }
    }
  }
  return kept;
}

}  // namespace galvani
