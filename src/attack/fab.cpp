// FAB (Croce and Hein 2020): walks along the decision boundary towards the point of it that is nearest to the original.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attack/builtin.h"
#include "attack/ensemble.h"
#include "attack/plane.h"

namespace galvani {
namespace {

constexpr int kFinalSteps = 3;

// z_t - z_y of goals (y, t).
at::Tensor lead_loss(const at::Tensor& logits, const at::Tensor& goals) {
  at::Tensor scores = logits.gather(1, goals);
  return scores.select(1, 1) - scores.select(1, 0);
}

// One class to get to, from one starting point each.
class Fab {
 public:
  Fab(Search& search, const FabSettings& settings, Search::Loss lead, at::Tensor goals)
      : search_(search),
        settings_(settings),
        lead_(std::move(lead)),
        goals_(std::move(goals)),
        x_(search.originals().clone()),
        out_(search.originals().clone()),
        nearest_(static_cast<std::size_t>(search.size()), std::numeric_limits<double>::infinity()) {}

  void run(bool random) {
    at::Tensor rows = search_.standing();
    search_.each(rows, [&](std::int64_t, std::int64_t row) { start(row, random); });
    for (std::int64_t step = 0; step < settings_.steps && rows.numel() > 0; ++step) {
      Search::Slope slope = search_.slope(x_, rows, lead_, goals_);
      search_.each(rows, [&](std::int64_t k, std::int64_t row) {
        move(search_.row_of(slope.gradient, k), slope.loss.data_ptr<float>()[k], row);
      });
      hand_in(rows, /*step_back=*/true);
      rows = search_.standing();
    }
    straighten(rows);
  }

 private:
  bool linf() const { return search_.norm() == Norm::linf; }

  void start(std::int64_t row, bool random) {
    float* x = search_.row_of(x_, row);
    const float* centre = search_.original(row);
    std::copy_n(centre, search_.values(), x);
    double reach = std::min(nearest_[static_cast<std::size_t>(row)],
                            search_.bounded() ? search_.radius() : std::numeric_limits<double>::infinity());
    if (!random || !std::isfinite(reach)) return;
    std::vector<float> draw(static_cast<std::size_t>(search_.values()));
    search_.stream(row).fill_normal(draw.data(), draw.size());
    double length = 0;
    for (float value : draw) {
      double size = std::abs(static_cast<double>(value));
      length = linf() ? std::max(length, size) : length + size * size;
    }
    auto scale = static_cast<float>(reach / 2 / std::max(linf() ? length : std::sqrt(length), 1e-30));
    for (std::int64_t i = 0; i < search_.values(); ++i)
      x[i] = within(centre[i] + scale * draw[static_cast<std::size_t>(i)]);
  }

  float within(float value) const { return std::min(std::max(value, search_.low()), search_.high()); }

  // Projections of the point and of the original on the linearised boundary, mixed.
  void move(const float* w, double lead, std::int64_t row) {
    std::int64_t n = search_.values();
    float* x = search_.row_of(x_, row);
    const float* centre = search_.original(row);
    double lead_of_centre = lead;
    for (std::int64_t i = 0; i < n; ++i) lead_of_centre += static_cast<double>(w[i]) * (centre[i] - x[i]);
    std::vector<float> step(static_cast<std::size_t>(n)), step_of_centre(static_cast<std::size_t>(n));
    double far = step_to_plane(x, w, -lead, linf(), search_.low(), search_.high(), n, step.data());
    double far_of_centre =
        step_to_plane(centre, w, -lead_of_centre, linf(), search_.low(), search_.high(), n, step_of_centre.data());
    if (!std::isfinite(far) || !std::isfinite(far_of_centre)) return;
    double mix = std::min(far / std::max(far + far_of_centre, 1e-12), settings_.alpha_max);
    for (std::int64_t i = 0; i < n; ++i) {
      auto at = static_cast<std::size_t>(i);
      double from_point = x[i] + settings_.eta * step[at];
      double from_centre = centre[i] + settings_.eta * step_of_centre[at];
      x[i] = within(static_cast<float>((1 - mix) * from_point + mix * from_centre));
    }
  }

  // Remembers points beyond the boundary; the search goes on from nearer to the original.
  void hand_in(const at::Tensor& rows, bool step_back) {
    at::Tensor fooled = search_.offer(x_, rows, search_.logits(x_, rows));
    const bool* is_fooled = fooled.data_ptr<bool>();
    search_.each(rows, [&](std::int64_t k, std::int64_t row) {
      beyond_[static_cast<std::size_t>(row)] = static_cast<char>(is_fooled[k]);
      if (!is_fooled[k]) return;
      float* x = search_.row_of(x_, row);
      const float* centre = search_.original(row);
      double far = search_.distance(x, row);
      if (far < nearest_[static_cast<std::size_t>(row)]) {
        nearest_[static_cast<std::size_t>(row)] = far;
        std::copy_n(x, search_.values(), search_.row_of(out_, row));
      }
      if (!step_back) return;
      auto share = static_cast<float>(settings_.beta);
      for (std::int64_t i = 0; i < search_.values(); ++i) x[i] = centre[i] + share * (x[i] - centre[i]);
    });
  }

  // Final search: on the line from the original to the nearest point found, by halving.
  void straighten(const at::Tensor& standing) {
    std::vector<std::int64_t> found;
    for (std::int64_t k = 0; k < standing.numel(); ++k) {
      std::int64_t row = standing.data_ptr<std::int64_t>()[k];
      if (std::isfinite(nearest_[static_cast<std::size_t>(row)])) found.push_back(row);
    }
    if (found.empty()) return;
    at::Tensor rows = at::tensor(found, at::kLong);
    std::vector<float> inside(nearest_.size(), 0), outside(nearest_.size(), 1);
    at::Tensor ends = out_.clone();
    for (int step = 0; step < kFinalSteps; ++step) {
      search_.each(rows, [&](std::int64_t, std::int64_t row) {
        auto r = static_cast<std::size_t>(row);
        float* x = search_.row_of(x_, row);
        const float* end = search_.row_of(ends, row);
        const float* centre = search_.original(row);
        // The boundary is near the outer end.
        float share = (inside[r] + 3 * outside[r]) / 4;
        for (std::int64_t i = 0; i < search_.values(); ++i) x[i] = centre[i] + share * (end[i] - centre[i]);
      });
      hand_in(rows, /*step_back=*/false);
      for (std::int64_t row : found) {
        auto r = static_cast<std::size_t>(row);
        float share = (inside[r] + 3 * outside[r]) / 4;
        (beyond_[r] != 0 ? outside[r] : inside[r]) = share;
      }
    }
  }

  Search& search_;
  const FabSettings& settings_;
  Search::Loss lead_;
  at::Tensor goals_;
  at::Tensor x_, out_;
  std::vector<double> nearest_;  // distance of out_
  std::vector<char> beyond_ = std::vector<char>(nearest_.size(), 0);
};

class FabAttack : public Attack {
 public:
  explicit FabAttack(const Options& options) : Attack(norm_of(options)) {
    settings_.steps = options.integer("steps");
    settings_.restarts = options.integer("restarts");
    settings_.alpha_max = options.real("alpha");
    settings_.eta = options.real("eta");
    settings_.beta = options.real("beta");
    settings_.classes = options.integer("classes");
  }

 private:
  void run(Search& search) const override { search_fab(search, settings_); }

  FabSettings settings_;
};

}  // namespace

void search_fab(Search& search, const FabSettings& settings) {
  std::int64_t classes = search.targeted() ? 1 : std::min(settings.classes, search.classes() - 1);
  for (std::int64_t j = 0; j < classes; ++j) {
    Search::Loss lead = search.targeted() ? search.towards(margin_loss) : lead_loss;
    at::Tensor goals = search.targeted() ? search.goals() : at::stack({search.labels(), search.other_class(j)}, 1);
    Fab fab(search, settings, std::move(lead), std::move(goals));
    for (std::int64_t restart = 0; restart < settings.restarts; ++restart) fab.run(/*random=*/restart > 0);
  }
}

AttackEntry fab_entry() {
  return {"fab",
          "the nearest point of the decision boundary, by projections on it (Croce and Hein 2020)",
          {norm_option(),
           {"steps", std::int64_t{100}, "steps for each class", 1.0, 1e6, {}},
           {"classes", std::int64_t{9}, "other classes tried, the best first", 1.0, 1e6, {}},
           {"restarts", std::int64_t{1}, "starts: the input itself, then random points", 1.0, 1e6, {}},
           {"alpha", 0.1, "most that a step takes of the original's own projection", 0.0, 1.0, {}},
           {"eta", 1.05, "how far past the boundary a projection goes", 1.0, 2.0, {}},
           {"beta", 0.9, "share of a change that is kept once it is over the boundary", 0.0, 1.0, {}}},
          [](const Options& options) -> std::unique_ptr<Attack> { return std::make_unique<FabAttack>(options); }};
}

}  // namespace galvani
