// DeepFool (Moosavi-Dezfooli et al. 2016): again and again to the nearest of the linearised boundaries.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "attack/builtin.h"
#include "galvani/attack/search.h"

namespace galvani {
namespace {

class DeepFool : public Attack {
 public:
  explicit DeepFool(const Options& options)
      : Attack(norm_of(options)),
        steps_(options.integer("steps")),
        overshoot_(options.real("overshoot")),
        classes_(options.integer("classes")) {}

 private:
  void run(Search& search) const override {
    std::int64_t others = search.targeted() ? 1 : std::min(classes_, search.classes()) - 1;
    std::vector<at::Tensor> goals = {search.labels()};
    for (std::int64_t j = 0; j < others && !search.targeted(); ++j) goals.push_back(search.other_class(j));
    Search::Loss leads = [](const at::Tensor& logits, const at::Tensor& classes) {
      at::Tensor scores = logits.gather(1, classes);
      return scores.narrow(1, 1, classes.size(1) - 1) - scores.narrow(1, 0, 1);
    };
    Search::Loss lead_of_target = [margin = search.towards(margin_loss)](const at::Tensor& logits,
                                                                         const at::Tensor& targets) {
      return margin(logits, targets).unsqueeze(1);
    };
    at::Tensor x = search.originals().clone();
    at::Tensor change = at::zeros_like(x);
    at::Tensor rows = search.all();
    for (std::int64_t step = 0; step < steps_ && rows.numel() > 0; ++step) {
      Search::Slope slope = search.targeted() ? search.slope(x, rows, lead_of_target, search.goals(), 1)
                                              : search.slope(x, rows, leads, at::stack(goals, 1), others);
      at::Tensor fooled = search.offer(x, rows, slope.logits);
      search.each(rows, [&](std::int64_t k, std::int64_t row) {
        if (fooled.data_ptr<bool>()[k]) return;
        move(search, slope.gradient.data_ptr<float>() + k * others * search.values(),
             slope.loss.data_ptr<float>() + k * others, others, row, search.row_of(change, row), search.row_of(x, row));
      });
      rows = rows.masked_select(fooled.logical_not());
    }
    if (rows.numel() > 0) search.offer(x, rows, search.logits(x, rows));
  }

  void move(const Search& search, const float* gradients, const float* leads, std::int64_t others, std::int64_t row,
            float* change, float* x) const {
    constexpr double kOverTheEdge = 1e-6;  // of the full scale: rounding must not leave a point on the boundary
    std::int64_t n = search.values();
    bool linf = search.norm() == Norm::linf;
    std::int64_t nearest = -1;
    double shortest = HUGE_VAL;
    double size = 0;
    for (std::int64_t j = 0; j < others; ++j) {
      double sum = 0;
      for (const float* w = gradients + j * n; w < gradients + (j + 1) * n; ++w)
        sum += linf ? std::abs(static_cast<double>(*w)) : static_cast<double>(*w) * *w;
      double norm = linf ? sum : std::sqrt(sum);
      double far = std::abs(static_cast<double>(leads[j])) / norm;
      if (!(norm > 0) || !(far < shortest)) continue;
      shortest = far;
      nearest = j;
      size = norm;
    }
    if (nearest < 0) return;
    const float* w = gradients + nearest * n;
    const float* centre = search.original(row);
    double length = shortest + kOverTheEdge * search.full();
    auto longer = static_cast<float>(1 + overshoot_);
    for (std::int64_t i = 0; i < n; ++i) {
      double direction = linf ? (w[i] > 0) - (w[i] < 0) : w[i] / size;
      float moved = centre[i] + change[i] + static_cast<float>(length * direction);
      change[i] = std::min(std::max(moved, search.low()), search.high()) - centre[i];
      x[i] = std::min(std::max(centre[i] + longer * change[i], search.low()), search.high());
    }
  }

  std::int64_t steps_;
  double overshoot_;
  std::int64_t classes_;
};

}  // namespace

AttackEntry deepfool_entry() {
  OptionInfo norm = norm_option();
  norm.fallback = std::string("l2");
  return {"deepfool",
          "steps to the nearest of the linearised boundaries (Moosavi-Dezfooli et al. 2016)",
          {norm,
           {"steps", std::int64_t{50}, "most steps", 1.0, 1e6, {}},
           {"overshoot", 0.02, "how far past the boundary, as a share of the change", 0.0, 10.0, {}},
           {"classes", std::int64_t{10}, "the best classes that are looked at, the label among them", 2.0, 1e6, {}}},
          [](const Options& options) -> std::unique_ptr<Attack> { return std::make_unique<DeepFool>(options); }};
}

}  // namespace galvani
