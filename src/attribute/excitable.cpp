#include "galvani/attribute/excitable.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/text.h"

namespace galvani {
namespace {

constexpr double kWidth = 900;  // of a picture
constexpr double kLabels = 110;
constexpr double kRow = 16;
constexpr double kMostCell = 16;

// From blue over white to red; `share` from -1 to 1. A square root, so that a few large values do not hide the others.
std::string colour(double share) {
  double strength = std::sqrt(std::min(1.0, std::abs(share)));
  auto fade = [&](double full) { return static_cast<int>(std::lround(255 + (full - 255) * strength)); };
  return share > 0 ? fmt::format("#{:02x}{:02x}{:02x}", fade(178), fade(24), fade(43))
                   : fmt::format("#{:02x}{:02x}{:02x}", fade(33), fade(102), fade(172));
}

}  // namespace

at::Tensor excitable(const at::Tensor& values, const ExcitementThreshold& threshold) {
  if (!threshold.relative) return values.gt(threshold.lambda);
  at::Tensor largest = values.abs().amax({1}, /*keepdim=*/true);
  return values.gt(threshold.lambda * largest).logical_and(largest.gt(0));
}

at::Tensor largest(const at::Tensor& values, std::int64_t count) {
  at::Tensor order = std::get<1>(values.sort(/*stable=*/true, 1, /*descending=*/true));
  return order.narrow(1, 0, std::min(count, values.size(1))).contiguous();
}

at::Tensor shared_neurons(const at::Tensor& a, const at::Tensor& b) {
  return a.unsqueeze(2).eq(b.unsqueeze(1)).flatten(1).sum(1);
}

NeuronPlace place_of(const TraceLayout& layout, std::int64_t neuron) {
  for (const TraceBlock& block : layout.blocks) {
    if (neuron < block.first + block.count) return {block.tap, neuron - block.first};
  }
  bad_usage("there is no neuron {} among {}", neuron, layout.neurons);
}

std::string strips_svg(const std::string& title, const TraceLayout& layout, const std::vector<NeuronStrip>& strips) {
  double most = 0;
  for (const NeuronStrip& strip : strips) most = std::max(most, strip.values.abs().max().item<double>());
  if (!(most > 0)) most = 1;
  double panel = kRow * static_cast<double>(layout.blocks.size()) + 34;
  double height = 58 + panel * static_cast<double>(strips.size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n"
      "<text x=\"10\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{2}</text>\n",
      kWidth, height, escape_markup(title));
  // What the colours mean.
  out += fmt::format("<text x=\"10\" y=\"40\" fill=\"#444\">{:.3g}</text>\n", -most);
  for (int i = -10; i <= 10; ++i)
    out += fmt::format("<rect x=\"{}\" y=\"30\" width=\"8\" height=\"12\" fill=\"{}\"/>\n", 70 + (i + 10) * 8,
                       colour(i / 10.0));
  out += fmt::format("<text x=\"244\" y=\"40\" fill=\"#444\">{:.3g}; a column is a neuron</text>\n", most);
  double top = 58;
  for (const NeuronStrip& strip : strips) {
    at::Tensor values = strip.values.to(at::kDouble).contiguous();
    out += fmt::format("<text x=\"10\" y=\"{:.0f}\" font-weight=\"bold\">{}</text>\n", top + 12,
                       escape_markup(strip.title));
    double y = top + 20;
    for (const TraceBlock& block : layout.blocks) {
      double cell = std::min(kMostCell, (kWidth - kLabels - 10) / static_cast<double>(block.count));
      out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\" fill=\"#444\">{}</text>\n", kLabels - 6,
                         y + kRow - 5, escape_markup(block.tap));
      for (std::int64_t i = 0; i < block.count; ++i) {
        double value = values.data_ptr<double>()[block.first + i];
        out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\"/>\n",
                           kLabels + cell * static_cast<double>(i), y, cell, kRow - 2,
                           std::isfinite(value) ? colour(value / most) : "#000000");
      }
      out += fmt::format(
          "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"none\" stroke=\"#bbb\" "
          "stroke-width=\"0.5\"/>\n",
          kLabels, y, cell * static_cast<double>(block.count), kRow - 2);
      y += kRow;
    }
    top += panel;
  }
  return out + "</svg>\n";
}

}  // namespace galvani
