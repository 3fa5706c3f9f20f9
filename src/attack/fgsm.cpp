// FGSM (Goodfellow et al. 2015): one step along the gradient, as long as allowed.
#include <ATen/ATen.h>

#include "attack/builtin.h"
#include "attack/steps.h"

namespace galvani {
namespace {

class Fgsm : public Attack {
 public:
  explicit Fgsm(const Options& options) : Attack(norm_of(options), options.real("eps")) {}

 private:
  void run(Search& search) const override {
    at::Tensor x = search.originals().clone();
    at::Tensor rows = search.all();
    Search::Slope at = search.slope(x, rows, search.towards(odds_loss), search.goals());
    search.each(rows, [&](std::int64_t k, std::int64_t row) {
      ascend(search, x.data_ptr<float>() + row * search.values(), at.gradient.data_ptr<float>() + k * search.values(),
             search.radius(), row);
    });
    search.offer(x, rows, search.logits(x, rows));
  }
};

}  // namespace

AttackEntry fgsm_entry() {
  return {"fgsm",
          "one step along the gradient (Goodfellow et al. 2015)",
          {eps_option(), norm_option()},
          [](const Options& options) -> std::unique_ptr<Attack> { return std::make_unique<Fgsm>(options); }};
}

}  // namespace galvani
