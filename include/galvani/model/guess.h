// Which preprocessing a network was trained with, when nobody says: the usual ones are tried on labelled images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "galvani/data/view.h"
#include "galvani/model/card.h"
#include "galvani/model/network.h"

namespace galvani {

struct PreprocessPreset {
  std::string name;  // "ImageNet mean and std"
  Preprocess preprocess;
};
// The usual ones for images of so many channels, the most usual first; with three channels each in rgb and bgr.
std::vector<PreprocessPreset> preprocess_presets(std::int64_t channels);

struct PresetScore {
  std::string name;
  Preprocess preprocess;
  std::int64_t correct = 0;
  double accuracy = 0;
  double low = 0;     // of the accuracy: Wilson's interval, 95%
  double high = 0;    // likewise
  double loss = 0;    // mean cross-entropy: decides where accuracies are a standard error apart or less
  double p = 1;       // sign test on the images where it and the best one differ
  bool tied = false;  // with the best one: p is 0.05 or more
};

struct PreprocessGuess {
  std::vector<PresetScore> scores;  // best first
  std::string data;                 // their name
  std::int64_t available = 0;       // images in them
  std::int64_t images = 0;          // how many were looked at
  bool better_than_chance = false;  // the best one is: chance is what saying the commonest class gives
  std::int64_t label_shift = 0;     // the scores are of labels + this, for it makes far more of them right
  bool graph_takes_bytes = false;   // its first arithmetic makes small numbers of bytes 0..255
  std::string labels;               // what would make far more of them right, if not a shift; may be empty
  std::int64_t tied() const;        // presets besides the best that cannot be told from it
};

inline constexpr std::int64_t kGuessSample = 500;

// Where the network and its data come from.
struct GuessSource {
  // With that layout, "nchw" or "nhwc"; Error(bad_input) if the graph does not take it.
  std::function<std::unique_ptr<Network>(const std::string& layout)> load;
  // As the network takes them; Error(bad_input) if it cannot.
  std::function<DataView(const Network& network)> data;
};

// Tries them on at most `most` of the images, evenly over the classes and the same ones every time. What the file or
// the flags state is tried, too, and a channel order or layout in the flags is kept to; a layout that the graph does
// not take is left out. Error(bad_input) for data without labels, Error(usage) for sounds.
PreprocessGuess guess_preprocessing(const GuessSource& source, const CardFlags& flags,
                                    std::int64_t most = kGuessSample);

// Rows of the data for that, in ascending order.
std::vector<std::int64_t> even_sample(const Labelled& data, std::int64_t most);

// Where a card beside the model is looked for.
std::filesystem::path card_beside(const std::filesystem::path& model);
// Error(usage) if there is one already: it is somebody's work.
void refuse_card_beside(const std::filesystem::path& model);
// Writes card_beside(model), with `remark` as its first line.
void write_card_beside(const std::filesystem::path& model, const Preprocess& preprocess, const std::string& remark,
                       std::int64_t label_shift = 0);

}  // namespace galvani
