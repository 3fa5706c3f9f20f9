// What a captioner learns from: annotations of neurons, and sentences.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "galvani/semantics/captioner.h"
#include "semantics/caption/annotation.h"

namespace galvani {

struct AnnotatedNeurons {
  std::vector<std::string> sentences;
  at::Tensor annotations;  // [neurons, pictures, D]
};

// Drawn scenes; the annotator learns from the first of them.
AnnotatedNeurons drawn_neurons(const CaptionerOptions& options, Annotator& annotator);
// A folder, as CaptionerOptions has it. Error(bad_input) that names the file for what is missing or does not fit.
AnnotatedNeurons neurons_of_folder(const CaptionerOptions& options, Annotator& annotator);

}  // namespace galvani
