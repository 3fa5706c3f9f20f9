// Neurons that nobody has to look at: pictures drawn so that what they have in common is known, the places where it is,
// and the sentence that says it. What a captioner learns from.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/rng.h"

namespace galvani {

inline constexpr std::int64_t kSceneSide = 32;

// What a drawn thing may have in common with the others of a neuron.
enum class SceneAttribute { colour, texture, shape, place };
inline constexpr std::size_t kSceneAttributes = 4;
const char* scene_attribute_name(SceneAttribute attribute);
// The words of an attribute, as they stand in sentences: "red", "striped", "discs", "at the top left".
const std::vector<std::string>& scene_words(SceneAttribute attribute);

// Which word of each attribute all pictures share; -1: they share none.
using SceneTruth = std::array<int, kSceneAttributes>;

// "red striped discs at the top left"; where no shape is shared, "areas".
std::string scene_sentence(const SceneTruth& truth);
// The truth that a sentence states: the words of it that are in it.
SceneTruth scene_truth(const std::string& sentence);

struct SceneNeuron {
  SceneTruth truth{};
  std::string sentence;
  at::Tensor images;  // [count, 3, side, side] uint8
  at::Tensor masks;   // [count, side, side] float, 1 where the neuron is active
};
// At least one attribute is shared. Masks are as ragged as those of real neurons are, and some pictures are no example
// of what the others show.
SceneNeuron draw_neuron(std::int64_t count, const Rng& rng);

}  // namespace galvani
