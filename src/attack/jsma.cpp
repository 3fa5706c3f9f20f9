// JSMA (Papernot et al. 2016): two values at a time, those that raise the target's score most and the others' least.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "attack/builtin.h"
#include "attack/saliency.h"
#include "galvani/attack/search.h"

namespace galvani {
namespace {

class Jsma : public Attack {
 public:
  explicit Jsma(const Options& options)
      : Attack(Norm::l0), theta_(options.real("theta")), gamma_(options.real("gamma")) {}

 private:
  void run(Search& search) const override {
    std::int64_t n = search.values();
    auto pairs = static_cast<std::int64_t>(gamma_ * static_cast<double>(n) / 2);
    // Whole levels, so that nothing is left to round.
    float step = std::max(1.0F, std::round(static_cast<float>(std::abs(theta_)) * search.full()));
    if (theta_ < 0) step = -step;
    at::Tensor towards = search.targeted() ? search.targets() : search.other_class(0);
    Search::Loss scores = [](const at::Tensor& logits, const at::Tensor& targets) {
      at::Tensor of_target = logits.gather(1, targets.unsqueeze(1)).squeeze(1);
      return at::stack({of_target, logits.sum(1) - of_target}, 1);
    };
    at::Tensor x = search.originals().clone();
    at::Tensor open = (step > 0 ? x.lt(search.high()) : x.gt(search.low())).to(at::kChar).contiguous();
    auto* is_open = reinterpret_cast<char*>(open.data_ptr<std::int8_t>());
    std::vector<char> stuck(static_cast<std::size_t>(search.size()), 0);
    at::Tensor rows = search.all();
    for (std::int64_t pair = 0; pair < pairs && rows.numel() > 0; ++pair) {
      Search::Slope slope = search.slope(x, rows, scores, towards, 2);
      at::Tensor going = search.offer(x, rows, slope.logits).logical_not();
      search.each(rows, [&](std::int64_t k, std::int64_t row) {
        if (!going.data_ptr<bool>()[k]) return;
        thread_local SaliencyPairs finder;
        thread_local std::vector<float> turned;
        const float* alpha = slope.gradient.data_ptr<float>() + k * 2 * n;
        if (step < 0) {
          // To lower a value by one is to go against the gradient.
          turned.assign(alpha, alpha + 2 * n);
          for (float& value : turned) value = -value;
          alpha = turned.data();
        }
        auto [first, second] = finder.best(alpha, alpha + n, is_open + row * n, n);
        if (first < 0) {
          stuck[static_cast<std::size_t>(row)] = 1;
          return;
        }
        for (std::int64_t i : {first, second}) {
          float& value = search.row_of(x, row)[i];
          value = std::clamp(value + step, search.low(), search.high());
          if (value == (step > 0 ? search.high() : search.low())) is_open[row * n + i] = 0;
        }
      });
      for (std::int64_t k = 0; k < rows.numel(); ++k) {
        if (stuck[static_cast<std::size_t>(rows.data_ptr<std::int64_t>()[k])] != 0) going.data_ptr<bool>()[k] = false;
      }
      rows = rows.masked_select(going);
    }
    if (rows.numel() > 0) search.offer(x, rows, search.logits(x, rows));
  }

  double theta_;
  double gamma_;
};

}  // namespace

AttackEntry jsma_entry() {
  return {"jsma",
          "few pixels, changed as much as possible, two at a time (Papernot et al. 2016)",
          {{"theta", 1.0, "change of a value, as a share of the full scale; negative: darker", -1.0, 1.0, {}, true},
           {"gamma", 0.145, "most values that are changed, as a share of all", 0.0, 1.0, {}}},
          [](const Options& options) -> std::unique_ptr<Attack> { return std::make_unique<Jsma>(options); }};
}

}  // namespace galvani
