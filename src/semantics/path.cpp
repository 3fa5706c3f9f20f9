#include "galvani/semantics/path.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

constexpr std::int64_t kManyClasses = 100;  // above: three labels in a text

std::vector<std::size_t> evenly(std::size_t all, std::int64_t wanted) {
  std::vector<int> places;
  for (std::size_t i = 0; i < all; ++i) places.push_back(static_cast<int>(i));
  std::vector<int> chosen = wanted == 0 ? places : evenly_chosen(places, wanted);
  return {chosen.begin(), chosen.end()};
}

// Neurons of a path, as a set of (layer, neuron).
double jaccard(const DecisionPath& a, const DecisionPath& b) {
  std::size_t both = 0;
  for (std::size_t layer = 0; layer < a.neurons.size(); ++layer) both += a.neurons[layer] == b.neurons[layer] ? 1 : 0;
  std::size_t either = a.neurons.size() + b.neurons.size() - both;
  return either == 0 ? 1 : static_cast<double>(both) / static_cast<double>(either);
}

}  // namespace

OptionSchema PathOptions::schema() {
  OptionSchema schema = {
      {"layers", std::int64_t{0}, "so many of the layers described, evenly; 0: all", 0, 1e4, {}},
      {"labels", std::int64_t{0}, "best classes in the text; 0: one, above 100 classes three", 0, 1e3, {}},
      {"select",
       std::string("top"),
       "neurons of a layer: the one most of the score flows through, or all",
       {},
       {},
       {"top", "all"}},
      {"text", std::string("on"), "paths compared as texts, or by the neurons they share", {}, {}, {"on", "off"}},
      {"words",
       std::string("both"),
       "what a text has: the class and what neurons see, or one of them",
       {},
       {},
       {"both", "label", "neurons"}},
      {"encoder", std::string("hash"), "of texts, as docs/text-encoders.md has them", {}, {}, {}},
  };
  for (const OptionInfo& option : ConductanceOptions::schema()) schema.push_back(option);
  return schema;
}

PathOptions PathOptions::from(const Options& options) {
  PathOptions result;
  result.layers = options.integer("layers");
  result.conductance = ConductanceOptions::from(options);
  result.labels = options.integer("labels");
  result.select = options.text("select") == "top";
  result.text = options.text("text") == "on";
  const std::string& words = options.text("words");
  result.words = words == "label" ? Words::label : words == "neurons" ? Words::neurons : Words::both;
  result.encoder = options.text("encoder");
  if (!result.text && !result.flows())
    bad_usage("text=off compares the neurons of paths, which select=all and words=label leave out");
  if (!result.select && result.words == Words::neurons)
    bad_usage("select=all with words=neurons says the same of every input");
  return result;
}

PathFinder::PathFinder(Network& network, const Descriptions& descriptions, const PathOptions& options,
                       std::vector<std::string> class_names)
    : network_(network), options_(options), class_names_(std::move(class_names)) {
  std::vector<int> taps = descriptions.taps(network);
  for (std::size_t place : evenly(taps.size(), options.layers)) {
    taps_.push_back(taps[place]);
    layers_.push_back(descriptions.layers[place]);
  }
  if (options_.flows()) conductance_ = std::make_unique<Conductance>(network, taps_, options_.conductance);
  if (options_.text) encoder_ = make_text_encoder(Spec::parse(options_.encoder));
  std::int64_t classes = network.info().classes;
  labels_ = options_.labels > 0 ? std::min(options_.labels, classes) : classes > kManyClasses ? 3 : 1;
}

std::vector<DecisionPath> PathFinder::find(const at::Tensor& images, const at::Tensor& targets,
                                           const at::Tensor& logits) {
  std::int64_t n = images.size(0);
  std::vector<DecisionPath> paths(static_cast<std::size_t>(n));
  if (n == 0) return paths;
  at::Tensor best =
      std::get<1>(logits.sort(/*stable=*/true, 1, /*descending=*/true)).narrow(1, 0, labels_).contiguous();
  for (std::int64_t i = 0; i < n; ++i) {
    const auto* row = best.data_ptr<std::int64_t>() + i * labels_;
    paths[static_cast<std::size_t>(i)].labels.assign(row, row + labels_);
  }
  if (!conductance_) return paths;
  Conductances flows = (*conductance_)(images, targets);
  for (std::int64_t i = 0; i < n; ++i)
    paths[static_cast<std::size_t>(i)].rise = static_cast<double>(flows.difference.data_ptr<float>()[i]);
  for (const at::Tensor& layer : flows.taps) {
    at::Tensor rows = layer.contiguous();
    at::Tensor sums = rows.sum(1);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto* row = rows.data_ptr<float>() + i * rows.size(1);
      // Of equal ones the first.
      const auto* most = std::max_element(row, row + rows.size(1));
      paths[static_cast<std::size_t>(i)].neurons.push_back(static_cast<std::int32_t>(most - row));
      paths[static_cast<std::size_t>(i)].flows.push_back(*most);
      paths[static_cast<std::size_t>(i)].layer_flows.push_back(sums.data_ptr<float>()[i]);
    }
  }
  return paths;
}

std::string PathFinder::class_name(std::int64_t label) const {
  auto i = static_cast<std::size_t>(label);
  return i < class_names_.size() ? class_names_[i] : std::to_string(label);
}

std::vector<std::string> PathFinder::said(const DecisionPath& path) const {
  std::vector<std::string> all;
  std::set<std::string> seen;
  auto say = [&](const std::string& words) {
    if (seen.insert(words).second) all.push_back(words);
  };
  if (options_.select) {
    for (std::size_t layer = 0; layer < path.neurons.size(); ++layer) say(words(layer, path.neurons[layer]));
  } else {
    for (const DescribedLayer& layer : layers_) {
      for (const DescribedNeuron& neuron : layer.neurons) say(neuron.words);
    }
  }
  return all;
}

std::string PathFinder::text(const DecisionPath& path) const {
  std::string result = "a photo";
  if (options_.words != PathOptions::Words::neurons) {
    std::vector<std::string> names;
    for (std::int64_t label : path.labels) names.push_back(class_name(label));
    result += fmt::format(" of a {}", fmt::join(names, " or "));
  }
  if (options_.words == PathOptions::Words::label) return result;
  return result + fmt::format(" with {}", fmt::join(said(path), ", "));
}

std::vector<std::string> PathFinder::texts(const std::vector<DecisionPath>& paths) const {
  std::vector<std::string> result;
  for (const DecisionPath& path : paths) result.push_back(text(path));
  return result;
}

std::vector<double> PathFinder::similarity(
    const std::vector<std::pair<const DecisionPath*, const DecisionPath*>>& pairs) {
  std::vector<double> result;
  if (!encoder_) {
    for (const auto& [a, b] : pairs) result.push_back(jaccard(*a, *b));
    return result;
  }
  if (pairs.empty()) return result;
  std::vector<std::string> texts;
  for (const auto& [a, b] : pairs) {
    texts.push_back(text(*a));
    texts.push_back(text(*b));
  }
  at::Tensor rows = encoder_->encode(texts).contiguous();
  std::int64_t width = rows.size(1);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (texts[2 * i] == texts[2 * i + 1]) {
      result.push_back(1);
      continue;
    }
    const float* a = rows.data_ptr<float>() + static_cast<std::int64_t>(2 * i) * width;
    double sum = 0;
    for (std::int64_t d = 0; d < width; ++d) sum += static_cast<double>(a[d]) * static_cast<double>(a[width + d]);
    result.push_back(sum);
  }
  return result;
}

std::string PathFinder::spec() const {
  const ConductanceOptions& c = options_.conductance;
  std::string names;
  for (const DescribedLayer& layer : layers_) names += (names.empty() ? "" : "+") + layer.tap;
  std::string flow = options_.flows()
                         ? fmt::format(" steps={} rule={} baseline={}", c.steps,
                                       c.rule == ConductanceOptions::Rule::trapezoid ? "trapezoid" : "riemann",
                                       c.baseline == ConductanceOptions::Baseline::black ? "black" : "zero")
                         : "";
  const char* words = options_.words == PathOptions::Words::label     ? "label"
                      : options_.words == PathOptions::Words::neurons ? "neurons"
                                                                      : "both";
  return fmt::format("layers={} labels={} select={} words={}{} {}", names, labels_, options_.select ? "top" : "all",
                     words, flow, encoder_ ? "encoder=" + encoder_->spec() : "text=off");
}

std::string PathFinder::files_sha256() const {
  if (!encoder_) return "";
  std::string all;
  for (const auto& [path, hash] : encoder_->files_sha256()) all += hash;
  return all.empty() ? "" : sha256(all);
}

}  // namespace galvani
