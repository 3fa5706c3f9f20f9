// How images are divided into the two domains that a cycle is trained between.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "galvani/generate/cycle.h"
#include "galvani/trace/deep_features.h"

namespace galvani {
namespace {

// One reading of CAGFuzz's "divided into two subsets with balanced example numbers", and the control: nothing tells the
// two apart. Its authors divided by hand, their public code by class.
DomainRows halves(const Options&, const Dataset& data, const Rng& rng) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(data.size()));
  std::iota(order.begin(), order.end(), 0);
  rng.derive("halves").shuffle(order);
  auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  return {{order.begin(), middle}, {middle, order.end()}};
}

std::int64_t class_of(const Dataset& data, const std::string& text) {
  for (std::int64_t label = 0; label < data.classes(); ++label) {
    if (data.class_name(label) == text || std::to_string(label) == text) return label;
  }
  bad_usage("pair: {} has no class '{}'; write pair:a=3,b=8", data.name, printable(text));
}

DomainRows class_pair(const Options& options, const Dataset& data, const Rng&) {
  std::int64_t a = class_of(data, options.text("a"));
  std::int64_t b = class_of(data, options.text("b"));
  if (a == b) bad_usage("pair: a and b are the same class; two are needed, such as pair:a=3,b=8");
  DomainRows rows;
  const auto* labels = data.labels.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < data.size(); ++i) {
    if (labels[i] == a) rows.first.push_back(i);
    if (labels[i] == b) rows.second.push_back(i);
  }
  return rows;
}

// [N, width] float: pixels, or deep features of a network.
at::Tensor rows_to_cluster(const Options& options, const Dataset& data) {
  const std::string& file = options.text("features");
  if (file.empty()) {
    log::info("clusters: of pixels, for no network is given (clusters:features=vgg.onnx)");
    return data.images.flatten(1).to(at::kFloat) / 255;
  }
  Network::Options how;
  how.data_shape = data.images.sizes().slice(1).vec();
  std::unique_ptr<Network> network = Network::load(file, how);
  check_fits(*network, data.images, data.name);
  return deep_features(*network, feature_of(*network, options.text("layer")), data.images);
}

// Two means: the first centre is drawn, the second with a probability that grows with the squared distance from it.
DomainRows clusters(const Options& options, const Dataset& data, const Rng& base) {
  at::Tensor rows = rows_to_cluster(options, data);
  Rng rng = base.derive("clusters");
  std::int64_t n = rows.size(0);
  auto first = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(n)));
  at::Tensor squares = (rows - rows[first]).square().sum(1).to(at::kDouble).contiguous();
  double at = rng.uniform() * squares.sum().item<double>();
  std::int64_t second = 0;
  for (double sum = squares.data_ptr<double>()[0]; sum <= at && second + 1 < n;)
    sum += squares.data_ptr<double>()[++second];
  at::Tensor centres = at::stack({rows[first], rows[second]});
  at::Tensor belongs;
  for (std::int64_t round = 0; round < options.integer("rounds"); ++round) {
    // |x - a|² - |x - b|² without the part that both share.
    at::Tensor side = centres.square().sum(1) - 2 * rows.matmul(centres.t());
    at::Tensor now = side.select(1, 1) < side.select(1, 0);
    if (belongs.defined() && at::equal(now, belongs)) break;
    belongs = now;
    for (std::int64_t c = 0; c < 2; ++c) {
      at::Tensor mine = rows.index_select(0, (belongs == (c == 1)).nonzero().squeeze(1));
      if (mine.size(0) > 0) centres[c] = mine.mean(0);
    }
  }
  DomainRows result;
  for (std::int64_t i = 0; i < n; ++i) (belongs[i].item<bool>() ? result.second : result.first).push_back(i);
  return result;
}

}  // namespace

const DomainRegistry& domain_splits() {
  static const DomainRegistry registry(
      "way to divide data into domains",
      {{"halves", "two halves at random: the control, for nothing tells them apart", {}, halves},
       {"pair",
        "one class and another",
        {{"a", std::string("0"), "name or number of the one", {}, {}, {}},
         {"b", std::string("1"), "of the other", {}, {}, {}}},
        class_pair},
       {"clusters",
        "two clusters of features",
        {{"features", std::string(), "network whose features are taken; none: pixels", {}, {}, {}},
         {"layer", std::string("penultimate"), "encoder, penultimate, or the name of a tap", {}, {}, {}},
         {"rounds", std::int64_t{50}, "most rounds of two means", 1, 10000, {}}},
        clusters}});
  return registry;
}

}  // namespace galvani
