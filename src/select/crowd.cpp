#include "select/crowd.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/runtime.h"
#include "select/neighbours.h"

namespace galvani {

Crowd::Crowd(std::string who, std::int64_t pool, std::int64_t among, std::int64_t classes)
    : who_(std::move(who)), pool_(pool), among_(among), classes_(classes) {}

double Crowd::share() const {
  return sampled() ? static_cast<double>(among_) / static_cast<double>(pool_) : 0;
}

void Crowd::remember(const at::Tensor& features, const std::vector<double>& shares, const std::vector<char>& usable,
                     const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (usable[i] == 0) continue;
    kept.push_back(static_cast<std::int64_t>(i));
    rows_.push_back(rows[i]);
    auto first = shares.begin() + static_cast<std::ptrdiff_t>(i) * classes_;
    shares_.insert(shares_.end(), first, first + classes_);
  }
  parts_.push_back(features.index_select(0, at::tensor(kept, at::kLong)));
  // Once more when they are searched, and again with their mean at zero.
  bytes_ += static_cast<std::uint64_t>(parts_.back().numel()) * 2 * sizeof(float);
  if (bytes_ > available_memory())
    bad_usage(
        "{} compares {} inputs of the pool with each other, for which the memory is too small: say fewer, such as "
        "{}:among=1000",
        who_, std::min(pool_, among_), who_);
}

void Crowd::gather() {
  if (rows_.empty()) return;
  search_ = std::make_unique<NearestSearch>(at::cat(parts_));
  parts_.clear();
}

std::vector<std::vector<Nearest>> Crowd::others_of(const at::Tensor& features, const std::vector<std::int64_t>& rows,
                                                   std::int64_t k) const {
  if (!search_) return std::vector<std::vector<Nearest>>(rows.size());
  auto all = neighbours_of(*search_, features, k + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto itself = [&](const Nearest& other) { return rows_[static_cast<std::size_t>(other.index)] == rows[i]; };
    all[i].erase(std::remove_if(all[i].begin(), all[i].end(), itself), all[i].end());
    if (static_cast<std::int64_t>(all[i].size()) > k) all[i].resize(static_cast<std::size_t>(k));
  }
  return all;
}

void Crowd::smooth(const double* own, const std::vector<Nearest>& others, double weight, double* out) const {
  double each = others.empty() ? 0 : weight / static_cast<double>(others.size());
  for (std::int64_t c = 0; c < classes_; ++c) {
    out[c] = (others.empty() ? 1 : 1 - weight) * own[c];
    for (const Nearest& other : others) out[c] += each * shares_[static_cast<std::size_t>(other.index * classes_ + c)];
  }
}

OptionInfo among_option() {
  return {"among",
          std::int64_t{20000},
          "similar inputs are sought among so many of the pool at most, drawn by the seed",
          1,
          1e7,
          {}};
}

}  // namespace galvani
