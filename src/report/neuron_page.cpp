#include "galvani/report/neuron_page.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/data/image.h"
#include "report/section.h"
#include "report/sprites.h"

namespace galvani {
namespace {

constexpr const char* kNeuronStyle =
    "ol{list-style:none;padding:0;display:grid;gap:10px}"
    "ol li{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px;"
    "content-visibility:auto;contain-intrinsic-size:900px 150px}"
    "ol li img{width:100%;image-rendering:pixelated;display:block;background:#888;border-radius:4px;margin-top:6px}"
    "ol li b{font-size:16px}ol li i{font-style:normal;color:var(--soft);font-variant-numeric:tabular-nums}"
    "ol li .p{color:var(--soft);font-size:12.5px;display:block;margin-top:2px}"
    "ol li.unsure b::after{content:\" ?\";color:var(--fault)}"
    "#find{font:inherit;color:inherit;background:var(--card);border:1px solid "
    "var(--line);border-radius:7px;padding:6px "
    "10px;width:min(420px,60vw)}"
    "#bar{position:sticky;top:0;z-index:1;background:var(--paper);padding:10px 0;display:flex;gap:12px;flex-wrap:wrap;"
    "align-items:center}li[hidden]{display:none!important}";

constexpr double kOutside = 0.3;  // how bright what is not in the mask is

std::string markup_of(const std::string& text) {
  return escape_markup(page_text(text));
}

std::string chance(double p) {
  return p < 1e-4 ? fmt::format("{:.0e}", p) : fmt::format("{:.4f}", p);
}

std::string neuron_item(const DescribedLayer& layer, std::int64_t number, const std::string& picture) {
  const DescribedNeuron& neuron = layer.neurons[static_cast<std::size_t>(number)];
  std::string parts;
  for (const Evidence& part : neuron.parts)
    parts += fmt::format("{}{}: {} {:.3f}, p {}", parts.empty() ? "" : "; ", part.words, part.figure, part.score,
                         chance(part.p));
  if (!neuron.sure) parts = "not clear; the best guess" + std::string(parts.empty() ? "" : ", ") + parts;
  parts += fmt::format("{}active above {:.4g} ({:.2f}% of its values)", parts.empty() ? "" : "; ", neuron.threshold,
                       neuron.above * 100);
  return fmt::format(
      "<li class=\"{}\" data-layer=\"{}\"><b>{}</b> <i>{} / {}</i><span class=\"p\">{}</span>"
      "<img alt=\"\" loading=\"lazy\" src=\"data:image/png;base64,{}\"></li>\n",
      neuron.sure ? "" : "unsure", markup_of(layer.tap), markup_of(neuron.words), markup_of(layer.tap), number,
      markup_of(parts), picture);
}

// The neurons of each layer that are shown.
std::vector<std::vector<std::int64_t>> shown_neurons(const Descriptions& descriptions, std::int64_t most) {
  std::int64_t all = descriptions.neurons();
  std::vector<std::vector<std::int64_t>> result;
  for (const DescribedLayer& layer : descriptions.layers) {
    auto n = static_cast<std::int64_t>(layer.neurons.size());
    std::int64_t wanted = all <= most ? n : std::max<std::int64_t>(1, n * most / all);
    result.emplace_back();
    for (std::int64_t i = 0; i < wanted; ++i) result.back().push_back(i * n / wanted);
  }
  return result;
}

}  // namespace

at::Tensor exemplar_strip(const Exemplars& exemplars, std::size_t layer, std::int64_t neuron, std::int64_t side) {
  const ExemplarLayer& from = exemplars.layers[layer];
  auto count = exemplars.options.count;
  std::vector<at::Tensor> tiles;
  for (std::int64_t place = 0; place < count; ++place) {
    std::int64_t row = from.rows[static_cast<std::size_t>(neuron * count + place)];
    if (row < 0) break;
    at::Tensor image = exemplars.image(row).to(at::kFloat);
    if (image.size(0) != 3) image = image.mean(0, /*keepdim=*/true).expand({3, -1, -1});
    if (from.height > 1) {
      at::Tensor mask = exemplars.mask(layer, neuron, place).to(at::kFloat);
      image = image * (mask * (1 - kOutside) + kOutside);
    }
    std::int64_t longest = std::max(image.size(1), image.size(2));
    if (side > 0 && longest > side) {
      std::int64_t height = std::max<std::int64_t>(1, image.size(1) * side / longest);
      std::int64_t width = std::max<std::int64_t>(1, image.size(2) * side / longest);
      image = at::adaptive_avg_pool2d(image.unsqueeze(0), {height, width})[0];
    }
    tiles.push_back(image);
  }
  if (tiles.empty()) return at::zeros({3, 1, 1}, at::kByte);
  return at::cat(tiles, 2).round().clamp(0, 255).to(at::kByte).contiguous();
}

std::string neuron_page(const Descriptions& descriptions, const Exemplars& exemplars,
                        const NeuronPageOptions& options) {
  if (descriptions.model != exemplars.model || descriptions.layers.size() != exemplars.layers.size())
    bad_input("the descriptions and the exemplars are not of the same neurons");
  std::vector<std::vector<std::int64_t>> shown = shown_neurons(descriptions, options.most);
  std::string items;
  std::string layers;
  std::int64_t total = 0;
  for (const auto& layer : shown) total += static_cast<std::int64_t>(layer.size());
  bool pictures = exemplars.type.kind == SampleKind::image;
  Progress progress("pictures", total, "neurons");
  for (std::size_t layer = 0; layer < shown.size(); ++layer) {
    const DescribedLayer& described = descriptions.layers[layer];
    layers += fmt::format("<option>{}</option>", markup_of(described.tap));
    std::vector<std::string> encoded(shown[layer].size());
    workers().run(static_cast<std::int64_t>(encoded.size()), [&](std::int64_t i, int) {
      auto place = static_cast<std::size_t>(i);
      if (pictures)
        encoded[place] = base64(encode_png(exemplar_strip(exemplars, layer, shown[layer][place], kLongestTile)));
    });
    for (std::size_t i = 0; i < encoded.size(); ++i) items += neuron_item(described, shown[layer][i], encoded[i]);
    progress.advance(static_cast<std::int64_t>(encoded.size()));
  }
  std::string note;
  if (total < descriptions.neurons())
    note = fmt::format("<p class=\"note\">{} of {} neurons are on this page, evenly taken from every layer.</p>\n",
                       format_count(total), format_count(descriptions.neurons()));
  std::string subtitle = fmt::format("{} neurons of {} layers, by {}; {} inputs of {}",
                                     format_count(descriptions.neurons()), descriptions.layers.size(),
                                     descriptions.describer, format_count(descriptions.inputs), descriptions.data);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>{0} - galvani describe</title>\n"
      "<style>\n{1}{2}\n</style>\n</head>\n<body>\n"
      "<header><div class=\"wide\"><p class=\"brand\">galvani <span>describe</span></p>\n<h1>{0}</h1>\n"
      "<p id=\"subtitle\">{3}</p></div></header>\n<main class=\"wide\">\n{4}"
      "<div id=\"bar\"><input id=\"find\" type=\"search\" placeholder=\"words, layer or number\" aria-label=\"search\">"
      "<select id=\"layer\" aria-label=\"layer\"><option value=\"\">all layers</option>{5}</select>"
      "<label><input type=\"checkbox\" id=\"sure\"> only what is clear</label>"
      "<span id=\"count\" class=\"hint\"></span></div>\n"
      "<p class=\"hint\">The {6} inputs that activate the neuron most, the strongest first; what is not in its mask is "
      "dark. A question mark: nothing is clear, this is the best "
      "guess.</p>\n<ol>\n{7}</ol>\n</main>\n<script>\n{8}</script>\n"
      "</body>\n</html>\n",
      markup_of(options.title), page_part("page.css"), kNeuronStyle, markup_of(subtitle), note, layers,
      exemplars.options.count, items, page_part("neurons.js"));
}

}  // namespace galvani
