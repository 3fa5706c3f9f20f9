// The flags of every verb that runs a model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "galvani/data/view.h"
#include "galvani/model/network.h"

namespace galvani::cli {

struct ModelFlags {
  std::string model;
  std::string taps = "default";
  Network::Options options;

  void add_to(Verb& verb, bool required = true);
  void add_options(Verb& verb);        // all but the model itself
  void add_preprocessing(Verb& verb);  // of them what becomes of values
  // What a program lent under this path (LentNetwork), else the file. Inputs of type `data` help a TorchScript file
  // that does not state its own.
  std::shared_ptr<Network> load(const std::optional<SampleType>& data = std::nullopt);
  std::unique_ptr<Network> load_file(const std::optional<SampleType>& data);

 private:
  void add_data_flags(Verb& verb);  // --resize, --crop, --classes, --skip-broken
};

// While one lives, verbs that are told the network's path take it as it is in memory.
class LentNetwork {
 public:
  explicit LentNetwork(std::shared_ptr<Network> network);
  ~LentNetwork();
  LentNetwork(const LentNetwork&) = delete;
  LentNetwork& operator=(const LentNetwork&) = delete;

 private:
  std::string path_;
};

// A model and the data it is run on, as it takes them.
struct ModelAndData {
  std::shared_ptr<Network> network;
  DataView data;
};
// Without labels, names of folders need not be classes of the model, and every input is unlabelled.
ModelAndData load_with_data(ModelFlags& flags, const std::string& spec, const std::string& default_split = "test",
                            bool with_labels = true);

// Of data that is looked at without a model: images of different sizes become squares of one.
InputNeeds needs_to_look_at(const OpenedData& data, bool skip_broken);

std::string join_shape(const std::vector<std::int64_t>& shape);  // "3x32x32"

}  // namespace galvani::cli
