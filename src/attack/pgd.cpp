// BIM (Kurakin et al. 2017) and PGD (Madry et al. 2018): many short steps along the gradient, from the input itself or
// from random points around it.
#include <ATen/ATen.h>

#include "attack/builtin.h"
#include "attack/steps.h"

namespace galvani {
namespace {

class Pgd : public Attack {
 public:
  // `path` is how far all steps together go, in units of ε, unless their length is given.
  Pgd(const Options& options, Search::Loss loss, double path, bool random, std::int64_t restarts)
      : Attack(norm_of(options), options.real("eps")),
        loss_(std::move(loss)),
        steps_(options.integer("steps")),
        step_(options.real("step")),
        path_(path),
        random_(random),
        restarts_(restarts) {}

 private:
  void run(Search& search) const override {
    at::Tensor x = search.originals().clone();
    Search::Loss loss = search.towards(loss_);
    double length = step_ > 0 ? step_ * search.full() : path_ * search.radius() / static_cast<double>(steps_);
    for (std::int64_t restart = 0; restart < restarts_; ++restart) {
      at::Tensor rows = search.standing();
      if (random_)
        search.each(rows, [&](std::int64_t, std::int64_t row) {
          search.random_start(search.row_of(x, row), row, /*surface=*/false);
        });
      for (std::int64_t step = 0; step < steps_ && rows.numel() > 0; ++step) {
        Search::Slope at = search.slope(x, rows, loss, search.goals());
        search.offer(x, rows, at.logits);
        search.each(rows, [&](std::int64_t k, std::int64_t row) {
          ascend(search, search.row_of(x, row), search.row_of(at.gradient, k), length, row);
        });
        rows = search.standing();
      }
      if (rows.numel() > 0) search.offer(x, rows, search.logits(x, rows));
    }
  }

  Search::Loss loss_;
  std::int64_t steps_;
  double step_;
  double path_;
  bool random_;
  std::int64_t restarts_;
};

OptionInfo steps_option(std::int64_t steps) {
  return {"steps", steps, "steps along the gradient", 1.0, 1e6, {}};
}

OptionInfo step_option(const std::string& rule) {
  return {"step", 0.0, "length of a step, as a share of the full scale; 0: " + rule, 0.0, 1e4, {}, true};
}

Search::Loss loss_of(const Options& options) {
  const std::string& loss = options.text("loss");
  return loss == "ce" ? odds_loss : loss == "margin" ? margin_loss : dlr_loss;
}

}  // namespace

AttackEntry bim_entry() {
  return {"bim",
          "steps along the gradient, from the input (Kurakin et al. 2017)",
          {eps_option(), norm_option(), steps_option(10), step_option("1.25 eps / steps")},
          [](const Options& options) -> std::unique_ptr<Attack> {
            return std::make_unique<Pgd>(options, odds_loss, 1.25, false, 1);
          }};
}

AttackEntry pgd_entry() {
  return {"pgd",
          "steps along the gradient, from random points around the input (Madry et al. 2018)",
          {eps_option(),
           norm_option(),
           steps_option(40),
           step_option("2.5 eps / steps"),
           {"loss",
            std::string("ce"),
            "what grows: cross entropy, the lead of the best wrong class, or that as a ratio of differences (DLR)",
            {},
            {},
            {"ce", "margin", "dlr"}},
           {"restarts", std::int64_t{1}, "random points to start from", 1.0, 1e6, {}},
           {"random", true, "start from random points; otherwise from the input", {}, {}, {}}},
          [](const Options& options) -> std::unique_ptr<Attack> {
            // From the input every restart would be the same.
            bool random = options.flag("random");
            return std::make_unique<Pgd>(options, loss_of(options), 2.5, random,
                                         random ? options.integer("restarts") : 1);
          }};
}

}  // namespace galvani
