// A sample of the data looked at twice: what is to be seen at every place, and where neurons are active.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/network.h"
#include "galvani/semantics/exemplars.h"
#include "semantics/concept_maps.h"
#include "semantics/concepts/concept.h"

namespace galvani {

// Where one neuron is active in the images of a probe, and how strongly each activates it.
struct NeuronActivity {
  std::vector<std::uint32_t> first;      // [images + 1]: of each image's positions; empty for a layer without a map
  std::vector<std::uint16_t> positions;  // of the grid, ascending within an image
  std::vector<float> peaks;              // [images]

  std::int64_t area() const { return static_cast<std::int64_t>(positions.size()); }
};

class NeuronProbe {
 public:
  // At most `images` of the data, drawn by the seed; fewer of large ones. Classes are the data's labels, or the
  // network's verdicts where labels are missing.
  NeuronProbe(Network& network, const DataView& data, std::int64_t images, std::uint64_t seed);

  std::int64_t images() const { return images_; }
  bool pictures() const { return pictures_; }  // not: sounds, of which only classes are known

  const std::vector<Concept>& concepts() const { return concepts_; }
  // Where they are, on the images' own grid, or as fine as a layer's map is.
  const ConceptMaps& maps() const { return maps_; }
  const ConceptMaps& maps(const ExemplarLayer& layer);

  const std::vector<std::int64_t>& labels() const { return labels_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  bool labels_are_verdicts() const { return verdicts_; }

  // Of every neuron of a layer, on the grid of maps(layer); `layer` holds the thresholds of the tap.
  std::vector<NeuronActivity> activity(int tap, const ExemplarLayer& layer) const;

 private:
  Grid grid_for(const ExemplarLayer& layer) const;
  void see(const std::vector<ConceptTest>& tests);
  Cutoffs find_cutoffs() const;

  Network& network_;
  DataView data_;  // the sample
  std::int64_t images_ = 0;
  bool pictures_ = false;
  Grid grid_;
  std::vector<Concept> concepts_;
  ConceptMaps maps_;
  std::map<std::pair<std::int64_t, std::int64_t>, ConceptMaps> pooled_;  // by height and width
  std::vector<std::int64_t> labels_;
  std::vector<std::string> class_names_;
  bool verdicts_ = false;
};

}  // namespace galvani
