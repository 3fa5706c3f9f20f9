// What `dissect` is made of.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "galvani/semantics/describer.h"
#include "semantics/probe.h"

namespace galvani {

// From where on something is said.
struct DissectLimits {
  double iou = 0.04;      // of an appearance, as network dissection has it
  double p = 0.01;        // after correction
  double second = 0.6;    // a colour joins a shape with so much of its IoU
  double place = 0.3;     // overlap of where it is active with a place
  double distinct = 1.5;  // times as much there as the other neurons of the layer
  double classes = 0.25;  // overlap with classes, beyond chance
  double joining = 0.1;   // what another class must add to that
  double alone = 0.5;     // from where on none is added
  double plenty = 0.3;    // overlap with images that have much of something, beyond chance
};

struct OverlapTest {
  double iou = 0;
  double p = 1;             // one-sided, not corrected
  std::int64_t active = 0;  // images
};
// Where the neuron is active against where something is present; `mean` [positions] is how often it is present there,
// `area` over all images.
OverlapTest overlap_test(std::int64_t images, const NeuronActivity& neuron,
                         const std::function<bool(std::int64_t image, std::size_t position)>& present,
                         const float* mean, std::int64_t area);
// Corrected for the number of things that were tried (Bonferroni).
double times(double p, std::size_t tries);

std::vector<NeuronWords> dissect_layer(NeuronProbe& probe, const ExemplarLayer& layer,
                                       const std::vector<NeuronActivity>& activity, const DissectLimits& limits);
// A phrase of the parts; without any, the guess, which is not sure.
NeuronWords joined_words(std::vector<Evidence> parts, const Evidence& guess);

}  // namespace galvani
