// How image and sound files of any size and kind become inputs of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace galvani {

// Shrinking averages areas, enlarging interpolates linearly; what is cut off or added is the same on both sides. An
// image that has the model's size already is left as it is.
struct Intake {
  enum class Resize {
    automatic,   // nothing was said: fit
    short_side,  // to `side`, then the centre is cut out
    exact,       // to the model's input, whatever the proportions
    fit,         // the short side to the model's input, then the centre is cut out
    pad,         // the long side to the model's input, the rest is black
  };
  Resize resize = Resize::automatic;
  std::int64_t side = 0;     // of short_side
  std::int64_t crop = 0;     // the side of the centre that is cut out; 0: as large as the model's input
  bool skip_broken = false;  // files that cannot be read are left out; else they are an error

  bool stated() const { return resize != Resize::automatic || crop != 0; }
  std::string resize_text() const;  // "256", "exact", ...; empty: nothing was said
  std::string str() const;          // for people: "short side to 256, centre 224x224"; empty: nothing was said
};

// What a model wants of data. Nothing set: the data as their files hold them.
struct InputNeeds {
  std::vector<std::int64_t> shape;  // [C, H, W] or [channels, length]; others are never changed
  Intake intake;
  std::string model;                     // its name, for messages; empty: nothing is said
  std::vector<std::string> class_names;  // may be empty
  std::int64_t classes = 0;              // its outputs; 0: labels stay as they are
  std::int64_t rate = 0;                 // of sounds, samples a second; 0: that of the files
  std::int64_t label_shift = 0;          // the class is the label + this, unless a name says which
};

}  // namespace galvani
