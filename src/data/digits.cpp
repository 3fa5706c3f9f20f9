#include "galvani/data/digits.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bounds.h"
#include "digit_shapes.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

constexpr std::int64_t kDigitPixels = kDigitSide * kDigitSide;
constexpr int kStepsPerSpan = 5;  // straight pieces between two points of a curve
constexpr float kTwoPi = 6.28318531F;

// How one person wrote one digit.
struct Hand {
  float jitter;  // of every skeleton point, in glyph heights
  float height;  // pixels
  float aspect;  // width / height
  float shear;
  float turn;          // radians
  float warp;          // amplitude of the smooth distortion, in glyph heights
  float radius;        // of the pen, pixels
  float radius_swing;  // how much it varies along a stroke
  float edge;          // width of the soft rim, pixels
  float ink;           // brightness 0..1
  float shift_x;
  float shift_y;
};

struct PenDot {
  float x;
  float y;
  float radius;
  float ink;
};

float lognormal(Rng& rng, double median, double spread) {
  return static_cast<float>(median * std::exp(spread * rng.normal()));
}

Hand draw_hand(Rng& rng) {
  Hand hand{};
  hand.jitter = std::min(lognormal(rng, 0.032, 0.5), 0.11F);
  hand.height = std::clamp(static_cast<float>(18.8 + 1.5 * rng.normal()), 13.0F, 22.0F);
  hand.aspect = std::clamp(lognormal(rng, 0.72, 0.2), 0.4F, 1.1F);
  hand.shear = static_cast<float>(0.1 + 0.22 * rng.normal());
  hand.turn = static_cast<float>(0.13 * rng.normal());
  hand.warp = std::min(lognormal(rng, 0.02, 0.5), 0.06F);
  hand.radius = std::clamp(lognormal(rng, 1.25, 0.28), 0.55F, 2.4F);
  hand.radius_swing = static_cast<float>(rng.uniform(0, 0.3));
  hand.edge = static_cast<float>(rng.uniform(0.7, 1.3));
  hand.ink = static_cast<float>(1.0 - 0.35 * rng.uniform() * rng.uniform());
  hand.shift_x = static_cast<float>(0.8 * rng.normal());
  hand.shift_y = static_cast<float>(0.8 * rng.normal());
  return hand;
}

const DigitShape& choose_shape(int digit, Rng& rng) {
  const std::vector<DigitShape>& shapes = digit_shapes(digit);
  double total = 0;
  for (const DigitShape& shape : shapes) total += shape.weight;
  double draw = rng.uniform(0, total);
  for (const DigitShape& shape : shapes) {
    draw -= shape.weight;
    if (draw < 0) return shape;
  }
  return shapes.back();
}

// Catmull-Rom: passes through p1 and p2, with the slopes of their neighbours.
PenPoint on_curve(PenPoint p0, PenPoint p1, PenPoint p2, PenPoint p3, float t) {
  auto blend = [t](float a, float b, float c, float d) {
    return 0.5F * (2 * b + t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a))));
  };
  return {blend(p0.x, p1.x, p2.x, p3.x), blend(p0.y, p1.y, p2.y, p3.y)};
}

bool same(PenPoint a, PenPoint b) {
  return a.x == b.x && a.y == b.y;
}

PenStroke jittered(const PenStroke& stroke, float jitter, Rng& rng) {
  PenStroke result = stroke;
  for (std::size_t i = 0; i < stroke.size(); ++i) {
    if (i > 0 && same(stroke[i], stroke[i - 1])) {
      result[i] = result[i - 1];  // a corner stays one
      continue;
    }
    result[i].x += jitter * static_cast<float>(rng.normal());
    result[i].y += jitter * static_cast<float>(rng.normal());
  }
  return result;
}

PenStroke flattened(const PenStroke& points) {
  PenStroke result;
  auto n = static_cast<std::ptrdiff_t>(points.size());
  auto at = [&](std::ptrdiff_t i) { return points[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(i, 0, n - 1))]; };
  for (std::ptrdiff_t i = 0; i + 1 < n; ++i) {
    if (same(at(i), at(i + 1))) continue;
    for (int step = 0; step < kStepsPerSpan; ++step) {
      float t = static_cast<float>(step) / kStepsPerSpan;
      result.push_back(on_curve(at(i - 1), at(i), at(i + 1), at(i + 2), t));
    }
  }
  result.push_back(points.back());
  return result;
}

// Smooth distortion: one long wave in each direction.
class Warp {
 public:
  Warp(float amplitude, Rng& rng) : amplitude_(amplitude) {
    for (float& value : waves_) value = static_cast<float>(rng.uniform(0.4, 1.3));
    for (float& value : phases_) value = static_cast<float>(rng.uniform()) * kTwoPi;
  }
  PenPoint operator()(PenPoint p) const {
    return {p.x + amplitude_ * std::sin(kTwoPi * waves_[0] * p.y + phases_[0]),
            p.y + amplitude_ * std::sin(kTwoPi * waves_[1] * p.x + phases_[1])};
  }

 private:
  float amplitude_;
  std::array<float, 2> waves_{};
  std::array<float, 2> phases_{};
};

std::vector<std::vector<PenDot>> write_digit(int digit, const Hand& hand, Rng& rng) {
  const DigitShape& shape = choose_shape(digit, rng);
  Warp warp(hand.warp, rng);
  float cosine = std::cos(hand.turn);
  float sine = std::sin(hand.turn);
  std::vector<std::vector<PenDot>> lines;
  for (const PenStroke& stroke : shape.strokes) {
    float phase = static_cast<float>(rng.uniform()) * kTwoPi;
    auto wave = static_cast<float>(rng.uniform(0.05, 0.25));
    // Now and then the pen hardly touches the paper for a while.
    bool skips = rng.chance(0.06);
    PenStroke path = flattened(jittered(stroke, hand.jitter, rng));
    std::size_t skip_from = skips ? rng.below(path.size()) : path.size();
    std::vector<PenDot> line;
    for (std::size_t i = 0; i < path.size(); ++i) {
      PenPoint p = warp(path[i]);
      float x = (p.x - 0.5F) * hand.aspect - hand.shear * (p.y - 0.5F);
      float y = p.y - 0.5F;
      float swing = 1 + hand.radius_swing * std::sin(wave * static_cast<float>(i) * kTwoPi / 2 + phase);
      bool skipped = i >= skip_from && i < skip_from + 4;
      line.push_back({hand.height * (cosine * x - sine * y), hand.height * (sine * x + cosine * y), hand.radius * swing,
                      skipped ? 0.25F * hand.ink : hand.ink * (0.88F + 0.12F * swing)});
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// Moves the middle of the drawing to the middle of the image, plus the writer's shift.
void centre(std::vector<std::vector<PenDot>>& lines, const Hand& hand) {
  float left = 1e9F;
  float right = -1e9F;
  float top = 1e9F;
  float bottom = -1e9F;
  for (const auto& line : lines) {
    for (const PenDot& dot : line) {
      left = std::min(left, dot.x);
      right = std::max(right, dot.x);
      top = std::min(top, dot.y);
      bottom = std::max(bottom, dot.y);
    }
  }
  float middle = static_cast<float>(kDigitSide - 1) / 2;
  float dx = middle - (left + right) / 2 + hand.shift_x;
  float dy = middle - (top + bottom) / 2 + hand.shift_y;
  for (auto& line : lines) {
    for (PenDot& dot : line) {
      dot.x += dx;
      dot.y += dy;
    }
  }
}

// The brightness a pen moving from a to b leaves on each pixel near it; overlapping strokes keep the brighter.
void draw_line(const PenDot& a, const PenDot& b, float edge, std::array<float, kDigitPixels>& canvas) {
  float reach = std::max(a.radius, b.radius) + edge;
  auto low = [&](float u, float v) { return std::max(0, static_cast<int>(std::ceil(std::min(u, v) - reach))); };
  auto high = [&](float u, float v) {
    return std::min(static_cast<int>(kDigitSide) - 1, static_cast<int>(std::floor(std::max(u, v) + reach)));
  };
  float dx = b.x - a.x;
  float dy = b.y - a.y;
  float inverse = 1.0F / std::max(dx * dx + dy * dy, 1e-6F);
  int first_x = low(a.x, b.x);
  int last_x = high(a.x, b.x);
  for (int y = low(a.y, b.y), last_y = high(a.y, b.y); y <= last_y; ++y) {
    float* row = canvas.data() + y * kDigitSide;
    float py = static_cast<float>(y) - a.y;
    for (int x = first_x; x <= last_x; ++x) {
      float px = static_cast<float>(x) - a.x;
      float t = std::clamp((px * dx + py * dy) * inverse, 0.0F, 1.0F);
      float ex = px - t * dx;
      float ey = py - t * dy;
      float inside = a.radius + t * (b.radius - a.radius) - std::sqrt(ex * ex + ey * ey);
      float cover = std::clamp(0.5F + inside / edge, 0.0F, 1.0F);
      row[x] = std::max(row[x], cover * (a.ink + t * (b.ink - a.ink)));
    }
  }
}

void add_noise(std::array<float, kDigitPixels>& canvas, Rng& rng) {
  bool dirty_paper = rng.chance(0.12);
  auto level = static_cast<float>(dirty_paper ? rng.uniform(0.02, 0.08) : rng.uniform(0.0, 0.03));
  std::array<float, kDigitPixels> noise;
  rng.fill_uniform(noise.data(), noise.size());
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    if (dirty_paper || canvas[i] > 0) canvas[i] += level * (noise[i] * 2 - 1) * 1.7F;
  }
}

// The labels of images 10 · ten to 10 · ten + 9.
std::vector<int> labels_of_ten(std::uint64_t split, std::int64_t ten) {
  static const Rng base = Rng(0).derive("digit labels");
  std::vector<int> order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  Rng rng = base.derive({split, static_cast<std::uint64_t>(ten)});
  rng.shuffle(order);
  return order;
}

int label_of(std::uint64_t split, std::int64_t index) {
  return labels_of_ten(split, index / 10)[static_cast<std::size_t>(index % 10)];
}

class DigitSource final : public Source {
 public:
  DigitSource(std::uint64_t split, std::int64_t size) : split_(split), size_(size) {}

  std::int64_t size() const override { return size_; }

  at::Tensor labels() override {
    constexpr std::int64_t kTens = 1000;
    at::Tensor result = at::empty({size_}, at::kLong);
    auto* out = result.data_ptr<std::int64_t>();
    workers().run((size_ / 10 + kTens - 1) / kTens, [&](std::int64_t chunk, int) {
      for (std::int64_t ten = chunk * kTens; ten < std::min(size_ / 10, (chunk + 1) * kTens); ++ten) {
        std::vector<int> labels = labels_of_ten(split_, ten);
        std::copy(labels.begin(), labels.end(), out + ten * 10);
      }
    });
    return result;
  }

  SampleType type(std::int64_t) override { return SampleType::image(1, kDigitSide, kDigitSide); }

  at::Tensor values(const std::vector<std::int64_t>& rows, std::int64_t) override {
    constexpr std::int64_t kChunk = 256;
    auto n = static_cast<std::int64_t>(rows.size());
    at::Tensor result = empty_images("digits", n, 1, kDigitSide, kDigitSide);
    auto* out = result.data_ptr<std::uint8_t>();
    workers().run((n + kChunk - 1) / kChunk, [&](std::int64_t chunk, int) {
      check_interrupt();
      for (std::int64_t i = chunk * kChunk; i < std::min(n, (chunk + 1) * kChunk); ++i) {
        std::int64_t row = rows[static_cast<std::size_t>(i)];
        draw_digit(label_of(split_, row), Rng(0).derive({split_, static_cast<std::uint64_t>(row)}),
                   out + i * kDigitPixels);
      }
    });
    return result;
  }

  std::vector<std::string> class_names() const override { return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}; }

 private:
  std::uint64_t split_;
  std::int64_t size_;
};

}  // namespace

void draw_digit(int digit, Rng rng, std::uint8_t* out) {
  Hand hand = draw_hand(rng);
  std::vector<std::vector<PenDot>> lines = write_digit(digit, hand, rng);
  centre(lines, hand);
  std::array<float, kDigitPixels> canvas{};
  for (const auto& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) draw_line(line[i], line[i + 1], hand.edge, canvas);
  }
  add_noise(canvas, rng);
  for (std::size_t i = 0; i < canvas.size(); ++i)
    out[i] = static_cast<std::uint8_t>(std::lround(std::clamp(canvas[i], 0.0F, 1.0F) * 255.0F));
}

std::unique_ptr<Source> open_digits(const std::string& split) {
  if (split == "train") return std::make_unique<DigitSource>(0, kDigitsTrain);
  if (split == "test") return std::make_unique<DigitSource>(1, kDigitsTest);
  if (split == "pool") return std::make_unique<DigitSource>(2, kDigitsPool);
  bad_usage("data 'digits:{}': digits has no split '{}', only train, test and pool", printable(split),
            printable(split));
}

}  // namespace galvani
