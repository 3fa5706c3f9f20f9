// APGD (Croce and Hein 2020, Algorithm 1): gradient ascent with momentum whose step is halved where it stops gaining.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "attack/builtin.h"
#include "attack/ensemble.h"
#include "attack/steps.h"

namespace galvani {
namespace {

constexpr double kMomentum = 0.75;  // α

// (z_t - z_y) / (z_(1) - (z_(3) + z_(4)) / 2) of goals (y, t), with as many of those as there are classes.
at::Tensor dlr_targeted_loss(const at::Tensor& logits, const at::Tensor& goals) {
  at::Tensor scores = logits.gather(1, goals);
  at::Tensor gain = scores.select(1, 1) - scores.select(1, 0);
  std::int64_t ranks = std::min<std::int64_t>(logits.size(1), 4);
  if (ranks < 3) return gain;
  at::Tensor best = std::get<0>(logits.topk(ranks, 1));
  return gain / (best.select(1, 0) - best.narrow(1, 2, ranks - 2).mean(1) + 1e-12);
}

// Steps after which the step size is looked at: p_0 = 0, p_1 = 0.22, p_{j+1} = p_j + max(p_j - p_{j-1} - 0.03, 0.06).
std::vector<std::int64_t> checkpoints(std::int64_t steps) {
  std::vector<std::int64_t> result;
  double before = 0;
  for (double now = 0.22; now <= 1;) {
    result.push_back(static_cast<std::int64_t>(std::ceil(now * static_cast<double>(steps))));
    double next = now + std::max(now - before - 0.03, 0.06);
    before = now;
    now = next;
  }
  return result;
}

// What is known of a row besides its points.
struct Climb {
  double step = 0;
  float last = 0;          // loss at the current point
  float best = 0;          // largest loss so far
  float best_before = 0;   // at the last checkpoint
  std::int64_t gains = 0;  // steps since then that raised the loss
  bool halved = false;     // at the last checkpoint
};

class Apgd {
 public:
  Apgd(Search& search, const ApgdSettings& settings, Search::Loss loss, at::Tensor goals)
      : search_(search),
        settings_(settings),
        loss_(std::move(loss)),
        goals_(std::move(goals)),
        x_(search.originals().clone()),
        previous_(at::empty_like(x_)),
        best_(at::empty_like(x_)),
        gradient_(at::empty_like(x_)),
        best_gradient_(at::empty_like(x_)),
        climbs_(static_cast<std::size_t>(search.size())) {}

  void run() {
    rows_ = search_.standing();
    search_.each(rows_, [&](std::int64_t, std::int64_t row) {
      search_.random_start(at(x_, row), row, /*surface=*/true);
      std::copy_n(at(x_, row), search_.values(), at(previous_, row));
      climbs_[static_cast<std::size_t>(row)] = Climb{2 * search_.radius()};
    });
    std::vector<std::int64_t> checks = checkpoints(settings_.steps);
    std::int64_t checked = 0;
    std::size_t next = 0;
    look(/*first=*/true);
    for (std::int64_t step = 0; step < settings_.steps && rows_.numel() > 0; ++step) {
      search_.each(rows_, [&](std::int64_t, std::int64_t row) { move(row, step == 0); });
      look(/*first=*/false);
      if (next >= checks.size() || step + 1 != checks[next]) continue;
      search_.each(rows_, [&](std::int64_t, std::int64_t row) { check(row, step + 1 - checked); });
      checked = checks[next++];
    }
  }

 private:
  float* at(const at::Tensor& x, std::int64_t row) const { return search_.row_of(x, row); }

  // Loss and gradient at the current points.
  void look(bool first) {
    if (rows_.numel() == 0) return;
    Search::Slope slope = search_.slope(x_, rows_, loss_, goals_);
    search_.each(rows_, [&](std::int64_t k, std::int64_t row) {
      Climb& climb = climbs_[static_cast<std::size_t>(row)];
      float loss = slope.loss.data_ptr<float>()[k];
      std::copy_n(at(slope.gradient, k), search_.values(), at(gradient_, row));
      if (!first && loss > climb.last) ++climb.gains;
      climb.last = loss;
      if (first) climb.best_before = loss;
      if (!first && !(loss > climb.best)) return;
      climb.best = loss;
      std::copy_n(at(x_, row), search_.values(), at(best_, row));
      std::copy_n(at(gradient_, row), search_.values(), at(best_gradient_, row));
    });
    search_.offer(x_, rows_, slope.logits);
    rows_ = search_.standing();
  }

  void move(std::int64_t row, bool first) {
    std::int64_t n = search_.values();
    float* x = at(x_, row);
    float* previous = at(previous_, row);
    std::vector<float> tip(x, x + n);
    ascend(search_, tip.data(), at(gradient_, row), climbs_[static_cast<std::size_t>(row)].step, row);
    auto fresh = static_cast<float>(first ? 1 : kMomentum);
    for (std::int64_t i = 0; i < n; ++i) {
      float now = x[i];
      x[i] = now + fresh * (tip[static_cast<std::size_t>(i)] - now) + (1 - fresh) * (now - previous[i]);
      previous[i] = now;
    }
    search_.project(x, row);
  }

  // Conditions 1 and 2 of the paper, after `span` steps.
  void check(std::int64_t row, std::int64_t span) {
    Climb& climb = climbs_[static_cast<std::size_t>(row)];
    bool seldom = static_cast<double>(climb.gains) < settings_.rho * static_cast<double>(span);
    bool stuck = !climb.halved && climb.best <= climb.best_before;
    climb.halved = seldom || stuck;
    climb.gains = 0;
    climb.best_before = climb.best;
    if (!climb.halved) return;
    climb.step /= 2;
    climb.last = climb.best;
    std::copy_n(at(best_, row), search_.values(), at(x_, row));
    std::copy_n(at(best_gradient_, row), search_.values(), at(gradient_, row));
  }

  Search& search_;
  const ApgdSettings& settings_;
  Search::Loss loss_;
  at::Tensor goals_;
  at::Tensor x_, previous_, best_, gradient_, best_gradient_;
  std::vector<Climb> climbs_;
  at::Tensor rows_;
};

class ApgdAttack : public Attack {
 public:
  explicit ApgdAttack(const Options& options) : Attack(norm_of(options), options.real("eps")) {
    settings_.steps = options.integer("steps");
    settings_.restarts = options.integer("restarts");
    settings_.rho = options.real("rho");
    settings_.classes = options.integer("classes");
    const std::string& loss = options.text("loss");
    settings_.loss = loss == "ce" ? ApgdLoss::cross_entropy : loss == "dlr" ? ApgdLoss::dlr : ApgdLoss::dlr_targeted;
  }

 private:
  void run(Search& search) const override { search_apgd(search, settings_); }

  ApgdSettings settings_;
};

}  // namespace

void search_apgd(Search& search, const ApgdSettings& settings) {
  bool by_class = settings.loss == ApgdLoss::dlr_targeted;
  std::int64_t classes = search.targeted() || !by_class ? 1 : std::min(settings.classes, search.classes() - 1);
  for (std::int64_t restart = 0; restart < settings.restarts; ++restart) {
    for (std::int64_t j = 0; j < classes; ++j) {
      if (settings.loss == ApgdLoss::cross_entropy) {
        Apgd(search, settings, search.towards(odds_loss), search.goals()).run();
      } else if (by_class || search.targeted()) {
        at::Tensor target = search.targeted() ? search.targets() : search.other_class(j);
        Apgd(search, settings, dlr_targeted_loss, at::stack({search.labels(), target}, 1)).run();
      } else {
        Apgd(search, settings, dlr_loss, search.labels()).run();
      }
    }
  }
}

AttackEntry apgd_entry() {
  return {"apgd",
          "gradient ascent with momentum that finds its step size itself (Croce and Hein 2020)",
          {eps_option(),
           norm_option(),
           {"steps", std::int64_t{100}, "steps", 1.0, 1e6, {}},
           {"loss",
            std::string("ce"),
            "what grows: cross entropy, difference of logits ratio, or the latter towards one class after the other",
            {},
            {},
            {"ce", "dlr", "dlr-t"}},
           {"classes", std::int64_t{9}, "with dlr-t: other classes tried, the best first", 1.0, 1e6, {}},
           {"restarts", std::int64_t{1}, "random points to start from", 1.0, 1e6, {}},
           {"rho", 0.75, "share of steps that must gain, or the step is halved", 0.0, 1.0, {}}},
          [](const Options& options) -> std::unique_ptr<Attack> { return std::make_unique<ApgdAttack>(options); }};
}

}  // namespace galvani
