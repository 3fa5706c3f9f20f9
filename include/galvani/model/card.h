// What a model file says about itself beyond its graph: how it wants its input, what its classes are called, how good
// it is. Stored in the ONNX metadata or the TorchScript archive; a `<model>.toml` beside the file and flags override
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "galvani/data/intake.h"

namespace at {
class Tensor;
}

namespace galvani {

// From the values of a file to the numbers a network was trained on:
// (low + (high - low) · value / full - mean) / std, per channel, in the channel order and layout of the model. `full`
// is 255 for the bytes of an image and 32768 for the 16-bit samples of a sound: by default they become 0..1 and -1..1.
struct Preprocess {
  double low = 0;
  double high = 1;
  std::vector<double> mean;       // one per channel, one for all, or empty: 0; in the model's channel order
  std::vector<double> deviation;  // likewise; empty: 1
  bool bgr = false;               // the model wants blue first; images are red first
  bool channels_last = false;     // the model wants [N, H, W, C], or [N, length, channels]

  // images [B, C, H, W] uint8, sounds [B, channels, length] int16, or floats on the same scale → float input of the
  // model.
  at::Tensor apply(const at::Tensor& inputs) const;
  // The gradient with respect to apply's result → with respect to its argument, per unit of the file.
  at::Tensor pull_back(const at::Tensor& gradient) const;
  std::string str() const;  // "range 0..1, mean 0.5 0.5 0.5, std 0.2 0.2 0.2, rgb, nchw"
};

struct ModelCard {
  Preprocess preprocess;
  Intake intake;                    // how image files become its input
  bool preprocess_known = false;    // somebody stated it; otherwise it is the default, a guess
  std::vector<std::int64_t> input;  // [C, H, W], [channels, length] or [values]; empty: as the graph says
  std::int64_t rate = 0;            // of sounds, samples a second; 0: nobody said
  std::string head;                 // what its output is: logits, softmax, log-softmax or sigmoid; empty: find out
  std::string task;                 // what it is asked: classes, binary, multi-label or regression; empty: find out
  std::string output;               // the name of the output that counts; empty: the first
  std::optional<double> threshold;  // of binary and multi-label: a probability above it is a yes; none: 0.5
  std::optional<double> tolerance;  // of a regression: what an answer may deviate
  std::string number;               // of that input: "float32", "float16" or "uint8"; empty: as the graph says
  std::vector<std::string> class_names;
  std::string classes_given;     // what --classes said, for records; empty: nothing
  std::int64_t label_shift = 0;  // the class of an input is its label + this
  std::string architecture;
  std::string data;                // what it was trained on
  std::optional<double> accuracy;  // in [0, 1]
  std::string accuracy_data;       // on what that was measured
  std::string source;              // where its weights come from
  // Of a generator of examples: names of the classes whose images are of its first and of its second domain.
  std::vector<std::string> first_domain, second_domain;
  std::string licence;

  std::string to_json() const;
  // `where` names the source in errors.
  static ModelCard from_json(const std::string& text, const std::string& where);
  void override_with_toml(const std::filesystem::path& path);
};

// What the flags of every verb that runs a model may say; empty: not given.
struct CardFlags {
  std::string mean;  // "0.5" or ".485,.456,.406"
  std::string deviation;
  std::string range;        // "0..1"
  std::string channels;     // rgb | bgr
  std::string layout;       // nchw | nhwc
  std::string input;        // "3,224,224", "1,16000", "1,16000@8000" or "784"
  std::string head;         // logits, softmax, log-softmax or sigmoid
  std::string task;         // classes, binary, multi-label or regression
  std::string output;       // a name, or a number from 0
  std::string threshold;    // a probability
  std::string tolerance;    // a number
  std::string rate;         // of sounds: samples a second
  std::string resize;       // a number (the short side), exact, fit or pad
  std::string crop;         // a number
  std::string classes;      // names separated by commas, or lines, a name each
  std::string label_shift;  // "1" or "-1": what to add to a label for the class
  bool skip_broken = false;

  void apply_to(ModelCard& card) const;
};

// Throws Error(usage or bad_input, naming `where`) unless the numbers make sense for that many channels.
void check(const Preprocess& preprocess, std::int64_t channels, const std::string& where);

}  // namespace galvani
