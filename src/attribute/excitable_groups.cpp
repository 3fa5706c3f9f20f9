#include <ATen/ATen.h>

#include <map>

#include "galvani/attribute/excitable.h"
#include "galvani/base/error.h"

namespace galvani {

double Excitement::share() const {
  return excitable.to(at::kDouble).mean().item<double>();
}

Excitement excite(Network& network, const ChangedInputs& group, const ExciteOptions& options) {
  LossGame game(network, options.taps, group.inputs, group.originals, group.labels);
  Excitement found;
  found.name = group.name;
  found.values = make_shapley(Spec::parse(options.by))->estimate(game, Rng(options.seed).derive("shapley"));
  at::Tensor finite = found.values.values.isfinite().all(1).contiguous();
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < finite.size(0); ++i) {
    if (!finite.data_ptr<bool>()[i]) continue;
    rows.push_back(i);
    found.of.push_back(group.of[static_cast<std::size_t>(i)]);
  }
  found.not_finite = finite.size(0) - static_cast<std::int64_t>(rows.size());
  if (rows.empty()) bad_input("{}: no loss of its inputs is a finite number", group.name);
  if (found.not_finite > 0) {
    at::Tensor index = at::tensor(rows, at::kLong);
    ShapleyValues& v = found.values;
    for (at::Tensor* part : {&v.values, &v.half_widths, &v.nobody, &v.all, &v.worths, &v.slopes}) {
      if (part->defined()) *part = part->index_select(0, index);
    }
  }
  found.excitable = excitable(found.values.values, options.threshold);
  found.mean = found.values.values.mean(0);
  found.top = largest(found.values.values, options.top);
  found.top_mean = largest(found.mean.unsqueeze(0), options.top)[0];
  return found;
}

SharedExcitement shared(const Excitement& a, const Excitement& b) {
  SharedExcitement result;
  result.of_means = shared_neurons(a.top_mean.unsqueeze(0), b.top_mean.unsqueeze(0))[0].item<std::int64_t>();
  auto top = static_cast<double>(a.top.size(1));
  result.by_chance = top * static_cast<double>(b.top.size(1)) / static_cast<double>(a.mean.size(0));
  std::multimap<std::int64_t, std::int64_t> places;
  for (std::size_t i = 0; i < b.of.size(); ++i) places.emplace(b.of[i], static_cast<std::int64_t>(i));
  std::vector<std::int64_t> left, right;
  for (std::size_t i = 0; i < a.of.size(); ++i) {
    for (auto [at, end] = places.equal_range(a.of[i]); at != end; ++at) {
      left.push_back(static_cast<std::int64_t>(i));
      right.push_back(at->second);
    }
  }
  result.pairs = static_cast<std::int64_t>(left.size());
  if (left.empty()) return result;
  at::Tensor both = shared_neurons(a.top.index_select(0, at::tensor(left, at::kLong)),
                                   b.top.index_select(0, at::tensor(right, at::kLong)));
  result.each = both.to(at::kDouble).mean().item<double>();
  return result;
}

}  // namespace galvani
