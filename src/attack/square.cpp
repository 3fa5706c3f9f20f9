// Square (Andriushchenko et al. 2020): random squares, kept when they lower the margin. Needs no gradients.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attack/builtin.h"
#include "attack/ensemble.h"

namespace galvani {
namespace {

// The share of pixels that a square covers shrinks with the queries made, as the paper has it for 10,000 of them.
double share_at(double initial, std::int64_t query, std::int64_t queries) {
  double at = static_cast<double>(query) / static_cast<double>(queries) * 10000;
  double share = initial;
  for (double bound : {10.0, 50.0, 200.0, 500.0, 1000.0, 2000.0, 4000.0, 6000.0, 8000.0}) {
    if (at > bound) share /= 2;
  }
  return share;
}

// A hill of concentric rectangles, of length 1 (eq. 2 of the paper's L2 part): value [height * width].
std::vector<float> hill(std::int64_t height, std::int64_t width) {
  std::vector<float> result(static_cast<std::size_t>(height * width), 0);
  std::int64_t rings = std::max(height / 2, width / 2) + 1;
  double square = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      double value = 0;
      for (std::int64_t ring = std::max(std::abs(y - height / 2), std::abs(x - width / 2)); ring < rings; ++ring)
        value += 1 / (static_cast<double>(ring + 1) * static_cast<double>(ring + 1));
      result[static_cast<std::size_t>(y * width + x)] = static_cast<float>(value);
      square += value * value;
    }
  }
  for (float& value : result) value /= static_cast<float>(std::sqrt(std::max(square, 1e-30)));
  return result;
}

// A hill beside a valley, of length 1: one half up, the other down, lying or standing by chance.
std::vector<float> hill_and_valley(std::int64_t height, std::int64_t width, bool standing) {
  std::int64_t first = (standing ? width : height) / 2;
  std::vector<float> up = standing ? hill(height, first) : hill(first, width);
  std::vector<float> down = standing ? hill(height, width - first) : hill(height - first, width);
  std::vector<float> result(static_cast<std::size_t>(height * width));
  double square = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      bool is_up = (standing ? x : y) < first;
      std::int64_t row = standing || is_up ? y : y - first;
      std::int64_t column = !standing || is_up ? x : x - first;
      std::int64_t stride = !standing ? width : is_up ? first : width - first;
      float value = is_up ? up[static_cast<std::size_t>(row * stride + column)]
                          : -down[static_cast<std::size_t>(row * stride + column)];
      result[static_cast<std::size_t>(y * width + x)] = value;
      square += static_cast<double>(value) * value;
    }
  }
  for (float& value : result) value /= static_cast<float>(std::sqrt(std::max(square, 1e-30)));
  return result;
}

float sign_of(Rng& rng) {
  return (rng.next_u32() & 1U) != 0 ? 1.0F : -1.0F;
}

struct Window {
  std::int64_t top, left, height, width;
};

class Square {
 public:
  Square(Search& search, const SquareSettings& settings)
      : search_(search),
        settings_(settings),
        x_(search.originals().clone()),
        tried_(search.originals().clone()),
        margin_(static_cast<std::size_t>(search.size())) {
    at::IntArrayRef shape = search.originals().sizes();
    channels_ = shape[1];
    sound_ = shape.size() == 3;
    height_ = sound_ ? 1 : shape[2];
    width_ = shape.back();
  }

  void run() {
    at::Tensor rows = search_.standing();
    for (std::int64_t query = 0; query < settings_.queries && rows.numel() > 0; ++query) {
      double share = share_at(settings_.share, query, settings_.queries);
      search_.each(rows, [&](std::int64_t, std::int64_t row) {
        if (query == 0) {
          std::copy_n(search_.original(row), search_.values(), search_.row_of(tried_, row));
          search_.norm() == Norm::l2 ? tiles(row) : stripes(row);
        } else {
          std::copy_n(search_.row_of(x_, row), search_.values(), search_.row_of(tried_, row));
          search_.norm() == Norm::l2 ? move_hill(share, row) : flip_square(share, row);
        }
        search_.project(search_.row_of(tried_, row), row);
      });
      at::Tensor logits = search_.logits(tried_, rows);
      at::Tensor goals = search_.goals().index_select(0, rows);
      at::Tensor margins = search_.towards(margin_loss)(logits, goals).contiguous();
      search_.each(rows, [&](std::int64_t k, std::int64_t row) {
        float margin = margins.data_ptr<float>()[k];
        if (query > 0 && !(margin > margin_[static_cast<std::size_t>(row)])) return;
        margin_[static_cast<std::size_t>(row)] = margin;
        std::copy_n(search_.row_of(tried_, row), search_.values(), search_.row_of(x_, row));
      });
      search_.offer(tried_, rows, logits);
      rows = search_.standing();
    }
  }

 private:
  float radius() const { return static_cast<float>(search_.radius()); }

  // So much of the image, a square; of a sound, a stretch.
  Window window(double share, std::int64_t least, bool odd, Rng& rng) const {
    double pixels = share * static_cast<double>(height_ * width_);
    auto side = std::max(static_cast<std::int64_t>(std::llround(sound_ ? pixels : std::sqrt(pixels))), least);
    if (odd && side % 2 == 0) ++side;
    Window result{0, 0, std::min(side, height_), std::min(side, width_)};
    result.top = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(height_ - result.height + 1)));
    result.left = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(width_ - result.width + 1)));
    return result;
  }

  template <class Work>
  void inside(const Window& window, std::int64_t channel, const Work& work) const {
    for (std::int64_t y = 0; y < window.height; ++y) {
      for (std::int64_t x = 0; x < window.width; ++x)
        work((channel * height_ + window.top + y) * width_ + window.left + x, y * window.width + x);
    }
  }

  // L∞: every column up or down as far as allowed.
  void stripes(std::int64_t row) {
    float* x = search_.row_of(tried_, row);
    for (std::int64_t channel = 0; channel < channels_; ++channel) {
      for (std::int64_t column = 0; column < width_; ++column) {
        float change = sign_of(search_.stream(row)) * radius();
        for (std::int64_t y = 0; y < height_; ++y) x[(channel * height_ + y) * width_ + column] += change;
      }
    }
  }

  // L∞: a square goes up or down as far as allowed, each channel by itself.
  void flip_square(double share, std::int64_t row) {
    Rng& rng = search_.stream(row);
    float* x = search_.row_of(tried_, row);
    const float* centre = search_.original(row);
    Window at = window(share, 1, false, rng);
    for (std::int64_t channel = 0; channel < channels_; ++channel) {
      float change = sign_of(rng) * radius();
      inside(at, channel, [&](std::int64_t i, std::int64_t) { x[i] = centre[i] + change; });
    }
  }

  // L2: five by five hills, up or down.
  void tiles(std::int64_t row) {
    constexpr std::int64_t kTiles = 5;
    Rng& rng = search_.stream(row);
    float* x = search_.row_of(tried_, row);
    std::int64_t down = height_ < kTiles ? 1 : kTiles;
    std::int64_t across = width_ < kTiles ? 1 : kTiles;
    Window tile{0, 0, height_ / down, width_ / across};
    for (std::int64_t r = 0; r < down; ++r) {
      for (std::int64_t c = 0; c < across; ++c) {
        tile.top = (height_ - tile.height * down) / 2 + r * tile.height;
        tile.left = (width_ - tile.width * across) / 2 + c * tile.width;
        std::vector<float> form = hill_and_valley(tile.height, tile.width, height_ == 1 || rng.chance(0.5));
        for (std::int64_t channel = 0; channel < channels_; ++channel) {
          float sign = sign_of(rng);
          inside(tile, channel,
                 [&](std::int64_t i, std::int64_t j) { x[i] += sign * form[static_cast<std::size_t>(j)] * radius(); });
        }
      }
    }
    stretch(row);
  }

  // L2: the change of two windows goes into a hill on the first.
  void move_hill(double share, std::int64_t row) {
    Rng& rng = search_.stream(row);
    float* x = search_.row_of(tried_, row);
    const float* centre = search_.original(row);
    Window to = window(share, 3, true, rng);
    Window from = window(share, 3, true, rng);
    double all = search_.distance(x, row);
    double unused = std::max(0.0, search_.radius() * search_.radius() - all * all) / static_cast<double>(channels_);
    std::vector<float> form = hill_and_valley(to.height, to.width, height_ == 1 || rng.chance(0.5));
    std::vector<float> mixed(form.size());
    for (std::int64_t channel = 0; channel < channels_; ++channel) {
      double in_window = 0;
      auto squared = [&](std::int64_t i) {
        double change = static_cast<double>(x[i]) - centre[i];
        return change * change;
      };
      inside(to, channel, [&](std::int64_t i, std::int64_t) { in_window += squared(i); });
      double available = in_window;
      inside(from, channel, [&](std::int64_t i, std::int64_t) {
        std::int64_t y = i / width_ % height_;
        std::int64_t column = i % width_;
        bool counted = y >= to.top && y < to.top + to.height && column >= to.left && column < to.left + to.width;
        if (!counted) available += squared(i);
      });
      float sign = sign_of(rng);
      double before = std::sqrt(in_window) + 1e-12;
      double square = 0;
      inside(to, channel, [&](std::int64_t i, std::int64_t j) {
        double value = sign * form[static_cast<std::size_t>(j)] + (static_cast<double>(x[i]) - centre[i]) / before;
        mixed[static_cast<std::size_t>(j)] = static_cast<float>(value);
        square += value * value;
      });
      auto scale = static_cast<float>(std::sqrt(available + unused) / (std::sqrt(square) + 1e-12));
      inside(from, channel, [&](std::int64_t i, std::int64_t) { x[i] = centre[i]; });
      inside(to, channel,
             [&](std::int64_t i, std::int64_t j) { x[i] = centre[i] + scale * mixed[static_cast<std::size_t>(j)]; });
    }
    stretch(row);
  }

  // To the surface of the ball.
  void stretch(std::int64_t row) {
    float* x = search_.row_of(tried_, row);
    const float* centre = search_.original(row);
    auto scale = static_cast<float>(search_.radius() / (search_.distance(x, row) + 1e-12));
    for (std::int64_t i = 0; i < search_.values(); ++i) x[i] = centre[i] + scale * (x[i] - centre[i]);
  }

  Search& search_;
  const SquareSettings& settings_;
  at::Tensor x_, tried_;
  std::vector<float> margin_;
  std::int64_t channels_, height_, width_;
  bool sound_;
};

class SquareAttack : public Attack {
 public:
  explicit SquareAttack(const Options& options) : Attack(norm_of(options), options.real("eps")) {
    settings_.queries = options.integer("queries");
    settings_.restarts = options.integer("restarts");
    settings_.share = options.real("p");
  }
  bool needs_gradients() const override { return false; }

 private:
  void run(Search& search) const override { search_square(search, settings_); }

  SquareSettings settings_;
};

}  // namespace

void search_square(Search& search, const SquareSettings& settings) {
  for (std::int64_t restart = 0; restart < settings.restarts; ++restart) Square(search, settings).run();
}

AttackEntry square_entry() {
  return {"square",
          "random squares, without gradients (Andriushchenko et al. 2020)",
          {eps_option(),
           norm_option(),
           {"queries", std::int64_t{5000}, "most passes for an input", 1.0, 1e8, {}},
           {"p", 0.8, "share of the pixels that the first squares cover", 0.0, 1.0, {}},
           {"restarts", std::int64_t{1}, "times to begin anew", 1.0, 1e6, {}}},
          [](const Options& options) -> std::unique_ptr<Attack> { return std::make_unique<SquareAttack>(options); }};
}

}  // namespace galvani
