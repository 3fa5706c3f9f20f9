// C&W (Carlini and Wagner 2017), L2: Adam on the length of the change plus c times the margin, c found by bisection.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attack/builtin.h"
#include "galvani/attack/search.h"

namespace galvani {
namespace {

// Values are middle + half · tanh(w), so that w is free to go anywhere.
// The range's ends themselves would be at infinity, and what is near them hardly moves: a quarter of a level away,
// which rounding takes back.
constexpr float kFromTheEnds = 0.25F;
constexpr double kLargest = 1e10;  // c that is never reached

struct CwSettings {
  std::int64_t steps, search_steps;
  double rate, initial, confidence;
};

// One row's weight between length and margin.
struct Balance {
  double c;
  double low = 0;
  double high = kLargest;
  double last = std::numeric_limits<double>::infinity();  // loss when progress was last looked at
  bool hit = false;                                       // since c was last changed
};

class Cw {
 public:
  Cw(Search& search, const CwSettings& settings)
      : search_(search),
        settings_(settings),
        middle_((search.low() + search.high()) / 2),
        half_((search.high() - search.low()) / 2),
        start_(((search.originals() - middle_) * ((half_ - kFromTheEnds) / (half_ * half_))).atanh()),
        w_(at::empty_like(start_)),
        squashed_(at::empty_like(start_)),
        mean_(at::empty_like(start_)),
        spread_(at::empty_like(start_)),
        x_(at::empty_like(start_)),
        balances_(static_cast<std::size_t>(search.size()), Balance{settings.initial}) {}

  void run() {
    for (std::int64_t i = 0; i < settings_.search_steps; ++i) {
      minimise();
      for (Balance& balance : balances_) adjust(balance);
    }
  }

 private:
  void minimise() {
    w_.copy_(start_);
    mean_.zero_();
    spread_.zero_();
    auto confidence = static_cast<float>(settings_.confidence);
    Search::Loss gain = [margin = search_.towards(margin_loss), confidence](const at::Tensor& logits,
                                                                            const at::Tensor& goals) {
      return margin(logits, goals).clamp_max(confidence);
    };
    std::int64_t look = std::max<std::int64_t>(1, settings_.steps / 10);
    at::Tensor rows = search_.all();
    for (std::int64_t step = 0; step < settings_.steps && rows.numel() > 0; ++step) {
      search_.each(rows, [&](std::int64_t, std::int64_t row) { squash(row); });
      Search::Slope slope = search_.slope(x_, rows, gain, search_.goals());
      hand_in(rows, slope, confidence);
      at::Tensor going = at::ones({rows.numel()}, at::kBool);
      search_.each(rows, [&](std::int64_t k, std::int64_t row) {
        double loss = update(search_.row_of(slope.gradient, k), slope.loss.data_ptr<float>()[k], step, row);
        if (step % look != 0) return;
        Balance& balance = balances_[static_cast<std::size_t>(row)];
        if (!(loss <= balance.last * 0.9999)) going.data_ptr<bool>()[k] = false;
        balance.last = loss;
      });
      if (step % look == 0) rows = rows.masked_select(going);
    }
  }

  void squash(std::int64_t row) {
    at::Tensor out = squashed_[row];
    at::tanh_out(out, w_[row]);
    const float* value = search_.row_of(squashed_, row);
    float* x = search_.row_of(x_, row);
    for (std::int64_t i = 0; i < search_.values(); ++i) x[i] = middle_ + half_ * value[i];
  }

  void hand_in(const at::Tensor& rows, const Search::Slope& slope, float confidence) {
    at::Tensor over = slope.loss.ge(confidence).nonzero().flatten();
    if (over.numel() == 0) return;
    at::Tensor chosen = rows.index_select(0, over);
    at::Tensor fooled = search_.offer(x_, chosen, slope.logits.index_select(0, over));
    for (std::int64_t k = 0; k < chosen.numel(); ++k) {
      if (fooled.data_ptr<bool>()[k])
        balances_[static_cast<std::size_t>(chosen.data_ptr<std::int64_t>()[k])].hit = true;
    }
  }

  // A step of Adam; gives the loss before it.
  double update(const float* gradient, double gain, std::int64_t step, std::int64_t row) {
    constexpr float kMean = 0.9F;
    constexpr float kSpread = 0.999F;
    constexpr float kEpsilon = 1e-8F;
    const float* squashed = search_.row_of(squashed_, row);
    const float* x = search_.row_of(x_, row);
    const float* centre = search_.original(row);
    float* w = search_.row_of(w_, row);
    float* mean = search_.row_of(mean_, row);
    float* spread = search_.row_of(spread_, row);
    double c = balances_[static_cast<std::size_t>(row)].c;
    auto t = static_cast<double>(step + 1);
    auto mean_scale = static_cast<float>(1 / (1 - std::pow(static_cast<double>(kMean), t)));
    auto spread_scale = static_cast<float>(1 / (1 - std::pow(static_cast<double>(kSpread), t)));
    auto rate = static_cast<float>(settings_.rate);
    float unit = 1 / search_.full();
    float weight = static_cast<float>(c) * search_.full();
    double square = 0;
    for (std::int64_t i = 0; i < search_.values(); ++i) {
      float change = (x[i] - centre[i]) * unit;
      square += static_cast<double>(change) * change;
      float slope = (2 * change - weight * gradient[i]) * half_ * unit * (1 - squashed[i] * squashed[i]);
      mean[i] = kMean * mean[i] + (1 - kMean) * slope;
      spread[i] = kSpread * spread[i] + (1 - kSpread) * slope * slope;
      w[i] -= rate * mean[i] * mean_scale / (std::sqrt(spread[i] * spread_scale) + kEpsilon);
    }
    return square - c * gain;
  }

  static void adjust(Balance& balance) {
    (balance.hit ? balance.high : balance.low) = balance.c;
    balance.c = balance.high < kLargest ? (balance.low + balance.high) / 2 : balance.c * 10;
    balance.hit = false;
    balance.last = std::numeric_limits<double>::infinity();
  }

  Search& search_;
  const CwSettings& settings_;
  float middle_, half_;
  at::Tensor start_, w_, squashed_, mean_, spread_, x_;
  std::vector<Balance> balances_;
};

class CwAttack : public Attack {
 public:
  explicit CwAttack(const Options& options)
      : Attack(Norm::l2),
        settings_{options.integer("steps"), options.integer("search"), options.real("rate"), options.real("c"),
                  options.real("confidence")} {}

 private:
  void run(Search& search) const override { Cw(search, settings_).run(); }

  CwSettings settings_;
};

}  // namespace

AttackEntry cw_entry() {
  return {"cw",
          "the shortest change, by Adam on length and margin (Carlini and Wagner 2017)",
          {{"steps", std::int64_t{1000}, "most steps for each weight of the margin", 1.0, 1e6, {}},
           {"search", std::int64_t{9}, "weights that are tried, by bisection", 1.0, 100.0, {}},
           {"rate", 0.01, "learning rate", 1e-9, 1e3, {}},
           {"c", 1e-3, "the first weight of the margin", 1e-12, 1e9, {}},
           {"confidence", 0.0, "lead that the wrong class should have, in scores", 0.0, 1e9, {}}},
          [](const Options& options) -> std::unique_ptr<Attack> { return std::make_unique<CwAttack>(options); }};
}

}  // namespace galvani
