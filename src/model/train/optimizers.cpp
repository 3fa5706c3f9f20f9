#include <ATen/ATen.h>

#include <cmath>

#include "galvani/base/error.h"
#include "galvani/model/train.h"

namespace galvani {
namespace {

// The values, to be written: LibTorch does not see that, but what was made of the parameter must be made anew.
float* changing(at::Tensor& parameter) {
  parameter.unsafeGetTensorImpl()->bump_version();
  return parameter.data_ptr<float>();
}

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const Options& options)
      : rate_(options.real("lr")),
        momentum_(static_cast<float>(options.real("momentum"))),
        decay_(static_cast<float>(options.real("weight_decay"))),
        nesterov_(options.flag("nesterov")) {}

  double base_rate() const override { return rate_; }
  void prepare(const std::vector<at::Tensor>& parameters) override {
    for (const at::Tensor& p : parameters) velocity_.push_back(at::zeros(p.sizes()));
  }
  std::vector<at::Tensor*> state() override {
    std::vector<at::Tensor*> result;
    for (at::Tensor& v : velocity_) result.push_back(&v);
    return result;
  }
  void update(std::size_t i, at::Tensor& parameter, const at::Tensor& gradient, double rate, std::int64_t) override {
    auto* p = changing(parameter);
    const auto* g = gradient.data_ptr<float>();
    auto* v = velocity_[i].data_ptr<float>();
    auto step = static_cast<float>(rate);
    float momentum = momentum_;
    // Biases and batch-norm scales have one dimension; decaying them only hurts.
    float decay = parameter.dim() > 1 ? decay_ : 0.0F;
    bool nesterov = nesterov_;
    std::int64_t n = parameter.numel();
    for (std::int64_t k = 0; k < n; ++k) {
      float d = g[k] + decay * p[k];
      v[k] = momentum * v[k] + d;
      p[k] -= step * (nesterov ? d + momentum * v[k] : v[k]);
    }
  }

 private:
  double rate_;
  float momentum_;
  float decay_;
  bool nesterov_;
  std::vector<at::Tensor> velocity_;
};

class Adam final : public Optimizer {
 public:
  explicit Adam(const Options& options)
      : rate_(options.real("lr")),
        beta1_(static_cast<float>(options.real("beta1"))),
        beta2_(static_cast<float>(options.real("beta2"))),
        decay_(static_cast<float>(options.real("weight_decay"))) {}

  double base_rate() const override { return rate_; }
  void prepare(const std::vector<at::Tensor>& parameters) override {
    for (const at::Tensor& p : parameters) {
      mean_.push_back(at::zeros(p.sizes()));
      square_.push_back(at::zeros(p.sizes()));
    }
  }
  std::vector<at::Tensor*> state() override {
    std::vector<at::Tensor*> result;
    for (at::Tensor& m : mean_) result.push_back(&m);
    for (at::Tensor& s : square_) result.push_back(&s);
    return result;
  }
  // Kingma and Ba 2015, with weight decay decoupled from the gradient (Loshchilov and Hutter 2019).
  void update(std::size_t i, at::Tensor& parameter, const at::Tensor& gradient, double rate,
              std::int64_t step) override {
    auto* p = changing(parameter);
    const auto* g = gradient.data_ptr<float>();
    auto* m = mean_[i].data_ptr<float>();
    auto* s = square_[i].data_ptr<float>();
    double correction1 = 1 - std::pow(static_cast<double>(beta1_), static_cast<double>(step));
    double correction2 = 1 - std::pow(static_cast<double>(beta2_), static_cast<double>(step));
    auto size = static_cast<float>(rate / correction1);
    auto root = static_cast<float>(1 / std::sqrt(correction2));
    float shrink = parameter.dim() > 1 ? 1 - static_cast<float>(rate) * decay_ : 1.0F;
    std::int64_t n = parameter.numel();
    for (std::int64_t k = 0; k < n; ++k) {
      m[k] = beta1_ * m[k] + (1 - beta1_) * g[k];
      s[k] = beta2_ * s[k] + (1 - beta2_) * g[k] * g[k];
      p[k] = p[k] * shrink - size * m[k] / (std::sqrt(s[k]) * root + kEpsilon);
    }
  }

 private:
  static constexpr float kEpsilon = 1e-8F;
  double rate_;
  float beta1_;
  float beta2_;
  float decay_;
  std::vector<at::Tensor> mean_;
  std::vector<at::Tensor> square_;
};

}  // namespace

const OptimizerRegistry& optimizers() {
  static const OptimizerRegistry registry("optimizer",
                                          {{"sgd",
                                            "stochastic gradient descent with momentum",
                                            {{"lr", 0.05, "learning rate", 0.0, 100.0, {}},
                                             {"momentum", 0.9, "share of the last step that is kept", 0.0, 0.9999, {}},
                                             {"weight_decay", 5e-4, "pull of weights towards zero", 0.0, 1.0, {}},
                                             {"nesterov", true, "look ahead along the momentum", {}, {}, {}}},
                                            [](const Options& options) { return std::make_unique<Sgd>(options); }},
                                           {"adam",
                                            "Adam with decoupled weight decay",
                                            {{"lr", 0.001, "learning rate", 0.0, 100.0, {}},
                                             {"beta1", 0.9, "memory of the gradient's mean", 0.0, 0.9999, {}},
                                             {"beta2", 0.999, "memory of its square", 0.0, 0.999999, {}},
                                             {"weight_decay", 0.0, "pull of weights towards zero", 0.0, 1.0, {}}},
                                            [](const Options& options) { return std::make_unique<Adam>(options); }}});
  return registry;
}

}  // namespace galvani
