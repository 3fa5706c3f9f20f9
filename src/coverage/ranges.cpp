#include "coverage/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "coverage/builtin.h"

namespace galvani {

Ranges::Ranges(const TraceLayout& layout)
    : low_(static_cast<std::size_t>(layout.neurons), std::numeric_limits<float>::max()),
      high_(static_cast<std::size_t>(layout.neurons), std::numeric_limits<float>::lowest()) {}

void Ranges::learn(const Traces& traces) {
  for (std::int64_t i = 0; i < traces.size(); ++i) {
    if (!traces.usable[static_cast<std::size_t>(i)]) continue;
    const float* row = traces.row(i);
    for (std::size_t j = 0; j < low_.size(); ++j) {
      low_[j] = std::min(low_[j], row[j]);
      high_[j] = std::max(high_[j], row[j]);
    }
  }
}

std::string Ranges::summary() const {
  std::size_t constant = 0;
  for (std::size_t j = 0; j < low_.size(); ++j) constant += low_[j] == high_[j] ? 1 : 0;
  return fmt::format("ranges of {} neurons ({} constant)", low_.size(), constant);
}

void Ranges::save(ArchiveWriter& out) const {
  out.put(low_);
  out.put(high_);
}

void Ranges::load(ArchiveReader& in) {
  low_ = in.get_vector<float>(low_.size());
  high_ = in.get_vector<float>(high_.size());
  auto finite = [](float v) { return std::isfinite(v); };
  if (!std::all_of(low_.begin(), low_.end(), finite) || !std::all_of(high_.begin(), high_.end(), finite))
    in.broken("holds ranges that are not finite");
}

std::unique_ptr<ProfilePart> make_ranges(const std::string& name, const TraceLayout& layout) {
  return name == kRanges ? std::make_unique<Ranges>(layout) : nullptr;
}

std::vector<std::string> ranges_part(const Options& options, const TraceLayout& layout) {
  return {kRanges};
}

}  // namespace galvani
