#include "galvani/report/explain.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "galvani/semantics/exemplars.h"
#include "report/drawing.h"

namespace galvani {
namespace {

constexpr int kTileSide = 132;
constexpr int kColumn = 168;
constexpr int kMargin = 24;
constexpr int kRowHeight = kTileSide + 92;
constexpr int kTop = 64;

// What the neuron says of each place of the image.
void set_map(ExplainedStep& step, const at::Tensor& values, float threshold, std::int64_t height, std::int64_t width) {
  at::Tensor large =
      at::upsample_bilinear2d(values.view({1, 1, values.size(0), values.size(1)}), {height, width}, false)[0][0];
  step.active = large > threshold;
  auto low = large.min().item<double>();
  auto high = large.max().item<double>();
  step.heat = high > low ? (large - low) / (high - low) : at::zeros_like(large);
}

// The image, dark where the neuron sees nothing, with the border of where it is active.
at::Tensor tinted(const at::Tensor& image, const ExplainedStep& step) {
  at::Tensor rgb = (image.size(0) == 3 ? image : image.narrow(0, 0, 1).expand({3, -1, -1})).to(at::kFloat);
  if (!step.heat.defined()) return rgb.to(at::kByte);
  at::Tensor heat = step.heat.square();
  at::Tensor result = rgb * (heat * 0.75 + 0.25);
  at::Tensor tint = at::tensor({255.F, 120.F, 0.F}).view({3, 1, 1});
  result = result * (1 - heat * 0.35) + tint * heat * 0.35;
  // A place is on the border if it is active and a neighbour is not.
  at::Tensor active = step.active.to(at::kFloat).unsqueeze(0).unsqueeze(0);
  at::Tensor inside = -at::max_pool2d(-active, {3, 3}, {1, 1}, {1, 1});
  at::Tensor border = (active - inside).clamp(0, 1)[0];
  at::Tensor yellow = at::tensor({255.F, 235.F, 60.F}).view({3, 1, 1});
  return (result * (1 - border) + yellow * border).round().clamp(0, 255).to(at::kByte);
}

struct Fitted {
  int width, height;
};
Fitted fitted(const at::Tensor& image) {
  auto height = static_cast<double>(image.size(1));
  auto width = static_cast<double>(image.size(2));
  double scale = kTileSide / std::max(height, width);
  return {std::max(1, static_cast<int>(width * scale)), std::max(1, static_cast<int>(height * scale))};
}

void draw_row(Drawing& drawing, const Explanation& row, int top, const Explanation* other, std::int64_t parts_at) {
  Fitted size = fitted(row.image);
  drawing.image(kMargin, top, size.width, size.height, row.image);
  int under = top + kTileSide + 18;
  drawing.text(kMargin, under, row.name, 14, kInk, true, Drawing::Anchor::start, kColumn - 12);
  bool other_target = row.target != row.verdict;
  drawing.paragraph(
      kMargin, under + 20,
      fmt::format("{}taken for {} ({:.1f}%){}", row.made_by.empty() ? "" : row.made_by + "; ", row.verdict_name,
                  row.confidence * 100, other_target ? "; the way of " + row.target_name : ""),
      13, other != nullptr && other->verdict != row.verdict ? kFaultInk : kSoftInk, kColumn - 14, 4);
  for (std::size_t i = 0; i < row.steps.size(); ++i) {
    const ExplainedStep& step = row.steps[i];
    int x = kMargin + (static_cast<int>(i) + 1) * kColumn;
    bool differs = other != nullptr && other->path.neurons[i] != row.path.neurons[i];
    drawing.arrow(x - kColumn + size.width + 5, top + size.height / 2, x - 5,
                  static_cast<std::int64_t>(i) == parts_at ? kFaultInk : kSoftInk);
    drawing.image(x, top, size.width, size.height, tinted(row.image, step));
    if (differs) drawing.box(x - 2, top - 2, size.width + 3, size.height + 3, kFaultInk, 2);
    drawing.text(x, under, fmt::format("neuron {}, {:.0f}%", step.neuron, step.share * 100), 13,
                 differs ? kFaultInk : kSoftInk, false, Drawing::Anchor::start, kColumn - 12);
    drawing.paragraph(x, under + 20, step.words + (step.sure ? "" : " ?"), 14, kInk, kColumn - 14, 4);
  }
}

}  // namespace

std::vector<Explanation> explain(Network& network, PathFinder& finder, const at::Tensor& images,
                                 const std::vector<std::string>& names, const at::Tensor& targets) {
  Predictions seen = predict(network, images);
  at::Tensor followed = at::where(targets < 0, seen.labels, targets).contiguous();
  if (followed.min().item<std::int64_t>() < 0)
    bad_input("the scores of an input are not finite, so no class's way can be followed");
  if (!finder.options().flows()) bad_usage("an explanation needs the neurons of a path, which these options leave out");
  std::vector<DecisionPath> paths = finder.find(images, followed, seen.logits);
  Request request;
  request.taps = finder.taps();
  request.form = TapForm::full;
  Outputs outputs = network.run(images, request);
  std::vector<Explanation> result;
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    Explanation row;
    row.image = images[i];
    row.name = names[static_cast<std::size_t>(i)];
    row.verdict = seen.labels.data_ptr<std::int64_t>()[i];
    row.verdict_name = finder.class_name(row.verdict);
    row.confidence = seen.confidence[i].item<double>();
    row.target = followed.data_ptr<std::int64_t>()[i];
    row.target_name = finder.class_name(row.target);
    row.path = paths[static_cast<std::size_t>(i)];
    row.text = finder.text(row.path);
    for (std::size_t layer = 0; layer < row.path.neurons.size(); ++layer) {
      const Tap& tap = network.taps()[static_cast<std::size_t>(finder.taps()[layer])];
      const DescribedNeuron& neuron = finder.layers()[layer].neurons[static_cast<std::size_t>(row.path.neurons[layer])];
      ExplainedStep step;
      step.tap = tap.name;
      step.neuron = row.path.neurons[layer];
      step.words = neuron.words;
      step.sure = neuron.sure;
      auto [height, width] = map_size(tap);
      if (row.path.rise != 0) {
        double per_flow = static_cast<double>(height * width) / row.path.rise;
        step.share = static_cast<double>(row.path.flows[layer]) * per_flow;
        step.whole = static_cast<double>(row.path.layer_flows[layer]) * per_flow;
      }
      if (height > 1) {
        at::Tensor map = by_neuron(outputs.taps[layer].narrow(0, i, 1), tap)[0][step.neuron].view({height, width});
        set_map(step, map.to(at::kFloat), neuron.threshold, row.image.size(1), row.image.size(2));
      }
      row.steps.push_back(std::move(step));
    }
    result.push_back(std::move(row));
  }
  return result;
}

std::int64_t parting(const Explanation& a, const Explanation& b) {
  for (std::size_t i = 0; i < a.path.neurons.size(); ++i) {
    if (a.path.neurons[i] != b.path.neurons[i]) return static_cast<std::int64_t>(i);
  }
  return -1;
}

std::string draw(const ExplainPicture& picture, PictureFormat format) {
  if (picture.rows.empty()) bad_usage("there is nothing to explain");
  const Explanation& first = picture.rows[0];
  auto layers = static_cast<int>(first.steps.size());
  auto rows = static_cast<int>(picture.rows.size());
  Drawing drawing(2 * kMargin + (layers + 1) * kColumn, kTop + rows * kRowHeight + (picture.compared ? 30 : 8));
  drawing.text(kMargin, 28, picture.title, 18, kInk, true, Drawing::Anchor::start, drawing.width() - 2 * kMargin);
  for (int i = 0; i < layers; ++i)
    drawing.text(kMargin + (i + 1) * kColumn, kTop - 10, first.steps[static_cast<std::size_t>(i)].tap, 13, kSoftInk,
                 true, Drawing::Anchor::start, kColumn - 12);
  std::int64_t parts_at = picture.compared ? parting(picture.rows[0], picture.rows[1]) : -1;
  for (int r = 0; r < rows; ++r) {
    const Explanation* other = picture.compared && r < 2 ? &picture.rows[static_cast<std::size_t>(1 - r)] : nullptr;
    draw_row(drawing, picture.rows[static_cast<std::size_t>(r)], kTop + r * kRowHeight, other, parts_at);
  }
  if (picture.compared) {
    std::string where = parts_at < 0 ? "the neurons are the same"
                                     : "the ways part at " + first.steps[static_cast<std::size_t>(parts_at)].tap;
    drawing.text(kMargin, drawing.height() - 14,
                 fmt::format("{}; similarity of the reasons {:.3f}", where, picture.similarity), 14, kInk);
  }
  if (format == PictureFormat::png) return drawing.png();
  if (format == PictureFormat::svg) return drawing.svg();
  std::string texts;
  for (const Explanation& row : picture.rows)
    texts += fmt::format("<p><b>{}</b>: {}</p>\n", escape_markup(row.name), escape_markup(row.text));
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'\"><style>body{{font:15px/1.45 system-ui,sans-serif;margin:20px;color:#262c36}}"
      "svg{{max-width:100%;height:auto}}</style></head>\n<body>\n{}{}</body></html>\n",
      escape_markup(picture.title), drawing.svg(), texts);
}

}  // namespace galvani
