// Selectors that read how sure the network is, and the one that reads nothing.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/rng.h"
#include "select/builtin.h"

namespace galvani {

void gini_of(const at::Tensor& probabilities, double* out) {
  at::Tensor p = probabilities.contiguous();
  std::int64_t classes = p.size(1);
  const float* row = p.data_ptr<float>();
  for (std::int64_t i = 0; i < p.size(0); ++i, row += classes) {
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += static_cast<double>(row[c]) * row[c];
    out[i] = 1 - sum;
  }
}

double prediction_confidence(const float* probabilities, std::int64_t classes) {
  float first = 0, second = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (probabilities[c] > first) {
      second = first;
      first = probabilities[c];
    } else {
      second = std::max(second, probabilities[c]);
    }
  }
  return static_cast<double>(first) - static_cast<double>(second);
}

at::Tensor unit_rows(const at::Tensor& features) {
  at::Tensor norms = features.square().sum(1, /*keepdim=*/true).sqrt();
  return (features / norms.masked_fill(norms == 0, 1)).contiguous();
}

namespace {

class RandomSelector : public Selector {
 public:
  explicit RandomSelector(std::uint64_t seed) : rng_(Rng(seed).derive("random selection")) {}
  bool random() const override { return true; }

 private:
  bool looks_at_output() const override { return false; }
  void run(const PoolPart& part, double* scores) override {
    for (std::size_t i = 0; i < part.rows.size(); ++i)
      scores[i] = rng_.derive(static_cast<std::uint64_t>(part.rows[i])).uniform();
  }
  Rng rng_;
};

// A number from each row of probabilities.
using UncertaintyOf = double (*)(const float* p, std::int64_t classes);

class UncertaintySelector : public Selector {
 public:
  explicit UncertaintySelector(UncertaintyOf of) : of_(of) {}

 private:
  void run(const PoolPart& part, double* scores) override {
    at::Tensor p = part.seen.probabilities.contiguous();
    for (std::int64_t i = 0; i < p.size(0); ++i) scores[i] = of_(p.data_ptr<float>() + i * p.size(1), p.size(1));
  }
  UncertaintyOf of_;
};

class GiniSelector : public Selector {
  void run(const PoolPart& part, double* scores) override { gini_of(part.seen.probabilities, scores); }
};

double least_confidence(const float* p, std::int64_t classes) {
  return 1 - static_cast<double>(*std::max_element(p, p + classes));
}

double entropy_of(const float* p, std::int64_t classes) {
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (p[c] > 0) sum -= static_cast<double>(p[c]) * std::log(static_cast<double>(p[c]));
  }
  return sum;
}

double closeness_of_two(const float* p, std::int64_t classes) {
  return 1 - prediction_confidence(p, classes);
}

// NSS section 3.1: DeepGini's formula on the outputs of neurons. They are no distribution; how they become one is not
// stated.
class InternalGini : public Selector {
 public:
  InternalGini(const Options& options, const Network& network)
      : need_(feature_of(network, options.text("layer"))), as_(options.text("as")) {}
  SelectorNeeds needs() const override {
    SelectorNeeds needs;
    needs.features = {need_};
    return needs;
  }

 private:
  void run(const PoolPart& part, double* scores) override {
    at::Tensor values = part.seen.features[0];
    if (as_ == "softmax") values = values.softmax(1);
    if (as_ == "share") {
      at::Tensor sums = values.abs().sum(1, /*keepdim=*/true);
      values = values.abs() / sums.masked_fill(sums == 0, 1);
    }
    gini_of(values, scores);
  }
  FeatureNeed need_;
  std::string as_;
};

SelectorEntry uncertainty_entry(const std::string& name, const std::string& help, UncertaintyOf of) {
  return {
      name, help, {}, [of](const Options&, const SelectContext&) { return std::make_unique<UncertaintySelector>(of); }};
}

}  // namespace

SelectorEntry random_entry() {
  return {"random", "any input, drawn by the seed", {}, [](const Options&, const SelectContext& context) {
            return std::make_unique<RandomSelector>(context.seed);
          }};
}

SelectorEntry softmax_entry() {
  return uncertainty_entry("softmax", "1 - the largest probability (vanilla softmax)", least_confidence);
}

SelectorEntry gini_entry() {
  return {"gini", "1 - sum of squared probabilities (DeepGini)", {}, [](const Options&, const SelectContext&) {
            return std::make_unique<GiniSelector>();
          }};
}

SelectorEntry entropy_entry() {
  return uncertainty_entry("entropy", "entropy of the probabilities", entropy_of);
}

SelectorEntry pcs_entry() {
  return uncertainty_entry("pcs", "how near the two largest probabilities are to each other", closeness_of_two);
}

SelectorEntry internal_gini_entry() {
  return {"internal-gini",
          "DeepGini's formula on the outputs of neurons",
          {{"layer", std::string("encoder"), "encoder, penultimate, or the name of a tap", {}, {}, {}},
           {"as", std::string("softmax"), "how outputs become shares of one", {}, {}, {"softmax", "share", "raw"}}},
          [](const Options& options, const SelectContext& context) {
            return std::make_unique<InternalGini>(options, context.network);
          }};
}

}  // namespace galvani
