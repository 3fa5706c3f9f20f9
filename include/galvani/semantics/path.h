// The reasons of a decision: in each of some layers the neuron that most of the class's score flows through, said in
// the words that describe it, and how alike two such paths are (NSGen 4.3).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/attribute/conductance.h"
#include "galvani/base/options.h"
#include "galvani/model/network.h"
#include "galvani/semantics/descriptions.h"
#include "galvani/semantics/text_encoder.h"

namespace galvani {

struct PathOptions {
  enum class Words { both, label, neurons };
  std::int64_t layers = 0;         // so many of those described, evenly; 0: all
  ConductanceOptions conductance;  // how much flows
  std::int64_t labels = 0;         // best classes in the text; 0: one, above 100 classes three
  bool select = true;              // one neuron a layer; not: all of them, whatever flows (the paper's ablation)
  bool text = true;                // paths are alike as texts; not: by the neurons that they share (likewise)
  Words words = Words::both;       // what the text has of a path (the control that the paper lacks)
  std::string encoder = "hash";    // of texts

  static OptionSchema schema();
  // Usage error for what makes no sense together.
  static PathOptions from(const Options& options);
  // Whether the network has to be looked into at all.
  bool flows() const { return select && words != Words::label; }
};

struct DecisionPath {
  std::vector<std::int32_t> neurons;  // one of each layer; empty if the options need none
  std::vector<float> flows;           // its conductance: the mean over its map
  std::vector<std::int64_t> labels;   // the classes of the best scores, the best first
  double rise = 0;                    // of the target's score, from the baseline to the input
  std::vector<float> layer_flows;     // of each layer: all its neurons' conductances together
};

class PathFinder {
 public:
  // The network must outlive it. `class_names` may be empty: numbers.
  PathFinder(Network& network, const Descriptions& descriptions, const PathOptions& options,
             std::vector<std::string> class_names);

  // images as Network::run takes them, [N, ...]; targets [N] int64, the class whose score's way is followed; logits
  // [N, classes], what the network says of them.
  std::vector<DecisionPath> find(const at::Tensor& images, const at::Tensor& targets, const at::Tensor& logits);

  // What the neurons of a path see, layers in order, what was said before left out.
  std::vector<std::string> said(const DecisionPath& path) const;
  // "a photo of a cat with vertical edges, red areas".
  std::string text(const DecisionPath& path) const;
  std::vector<std::string> texts(const std::vector<DecisionPath>& paths) const;
  // Cosine of the texts' vectors, or the share of common neurons (Jaccard); 1: the same.
  std::vector<double> similarity(const std::vector<std::pair<const DecisionPath*, const DecisionPath*>>& pairs);

  const PathOptions& options() const { return options_; }
  const std::vector<int>& taps() const { return taps_; }
  const std::vector<DescribedLayer>& layers() const { return layers_; }
  const std::string& words(std::size_t layer, std::int32_t neuron) const {
    return layers_[layer].neurons[static_cast<std::size_t>(neuron)].words;
  }
  std::string class_name(std::int64_t label) const;
  // Everything that similarities depend on besides model, descriptions and files: what a threshold belongs to.
  std::string spec() const;
  // Of the files its encoder reads, as one SHA-256; empty: none.
  std::string files_sha256() const;
  std::int64_t passes() const { return conductance_ ? conductance_->passes() : 0; }

 private:
  Network& network_;
  PathOptions options_;
  std::vector<int> taps_;
  std::vector<DescribedLayer> layers_;
  std::vector<std::string> class_names_;
  std::unique_ptr<Conductance> conductance_;  // null: no option needs it
  std::unique_ptr<TextEncoder> encoder_;      // null: no texts are compared
  std::int64_t labels_;
};

}  // namespace galvani
