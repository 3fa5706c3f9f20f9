#include "coverage/testing.h"
#include "galvani/base/rng.h"

namespace galvani::testing {

TraceLayout layout_of(const std::vector<std::int64_t>& widths, std::int64_t classes, std::int64_t features) {
  TraceLayout layout;
  layout.classes = classes;
  layout.model = "test";
  for (std::size_t i = 0; i < widths.size(); ++i) {
    layout.add(std::string(1, static_cast<char>('a' + i)), widths[i]);
    LinearLayer layer;
    layer.dense = true;
    layer.weight = at::arange(widths[i] * features, at::kFloat).sin().view({widths[i], features});
    layout.layers.emplace_back(layer);
  }
  return layout;
}

Traces made_up(const TraceLayout& layout, std::int64_t n, std::uint64_t seed) {
  Rng rng(seed);
  std::int64_t features = layout.layers.front()->features();
  at::Tensor common = at::empty({n, 1});
  rng.fill_normal(common.data_ptr<float>(), static_cast<std::size_t>(n));
  std::vector<at::Tensor> blocks;
  std::vector<LayerTrace> layers;
  for (std::size_t b = 0; b < layout.blocks.size(); ++b) {
    at::Tensor x = at::empty({n, features});
    rng.fill_normal(x.data_ptr<float>(), static_cast<std::size_t>(x.numel()));
    x = x + common * 0.5;
    blocks.push_back(at::mm(x, layout.layers[b]->weight.t()) + 0.25);
    layers.push_back({x, x.unsqueeze(2)});
  }
  at::Tensor values = at::cat(blocks, 1);
  at::Tensor logits = at::empty({n, layout.classes});
  rng.fill_normal(logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
  Traces traces = make_traces(values, n > 0 ? logits.argmax(1) : at::empty({0}, at::kLong), logits);
  traces.relevance = values.sin();
  traces.layers = layers;
  return traces;
}

Traces given(const std::vector<std::vector<float>>& rows, const std::vector<std::int64_t>& predicted) {
  auto n = static_cast<std::int64_t>(rows.size());
  at::Tensor values = at::empty({n, static_cast<std::int64_t>(rows.front().size())});
  for (std::int64_t i = 0; i < n; ++i) values[i].copy_(at::tensor(rows[static_cast<std::size_t>(i)], at::kFloat));
  Traces traces = make_traces(values, predicted.empty() ? at::zeros({n}, at::kLong) : at::tensor(predicted, at::kLong));
  traces.relevance = values;
  return traces;
}

Traces reordered(const Traces& traces, const std::vector<std::int64_t>& order) {
  return galvani::rows_of(traces, order);
}

Traces rows_of(const Traces& traces, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = first; i < first + count; ++i) order.push_back(i);
  return reordered(traces, order);
}

std::shared_ptr<const Profile> profile_of(const TraceLayout& layout, const std::string& criteria,
                                          const Traces& traces) {
  auto profile = std::make_shared<Profile>(layout, Spec::parse_list(criteria));
  profile->learn(traces);
  profile->finish();
  return profile;
}

std::string state_of(const Criterion& criterion) {
  ArchiveWriter out;
  criterion.save(out);
  return out.bytes();
}

}  // namespace galvani::testing
