// Retraining a network on clean data and tests, as each of a repair's trainings does it.
#pragma once

#include <functional>
#include <string>

#include "galvani/repair/repair.h"

namespace galvani {

struct Retraining {
  std::string stage;                 // for news: "repair", "round 2"
  std::filesystem::path checkpoint;  // empty: none
  const Dataset& train;
  const Dataset& tests;  // may be empty
  const Dataset& validation;
  bool adversarial = false;  // against the attack that the options name
};
// Where the options leave them open.
std::int64_t chosen_epochs(std::int64_t train, std::int64_t tests, const RepairOptions& options);
void retrain(Network& network, const Retraining& what, const RepairOptions& options, const RepairListener& listener);

// As many images for a control as there are tests: drawn from the training data; for the control "noise" with Gaussian
// noise that changes them as much as the tests were, in the mean.
Dataset control_images(const std::string& control, const Dataset& train, const FoundTests& tests, const Rng& rng);

// Takes the weights back towards those of the original, in tenths of the way, until at most half of `loss` is lost of
// the accuracy on `clean`: half, for these are not the inputs it will be measured on. How much of the way is left.
double blend_back(Network& network, Network& original, const Dataset& clean, double loss);

// Verdicts on images as predict() gives them, chunk by chunk, with a progress bar.
Verdicts judge(Network& network, const Dataset& data, const std::string& title);

}  // namespace galvani
