// Words for neurons.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/registry.h"
#include "galvani/data/view.h"
#include "galvani/model/network.h"
#include "galvani/semantics/exemplars.h"

namespace galvani {

// One thing that is said of a neuron, and what speaks for it.
struct Evidence {
  std::string words;   // "red"
  std::string about;   // "appearance", "place", "class", "formula", "caption"
  std::string figure;  // what `score` is: "IoU", "AUROC", ...
  double score = 0;
  double p = 1;  // of as good a score by chance, times the number of things that were tried
};

struct NeuronWords {
  std::string words;   // a short phrase, never empty
  bool sure = false;   // not: the best guess, which chance may have made, or which overlaps too little
  double score = 0;    // of the first part
  std::string figure;  // what that is
  double p = 1;        // of the first part
  std::vector<Evidence> parts;
};

struct DescribeTask {
  Network& network;
  const Exemplars& exemplars;
  const DataView& data;  // what the exemplars are of
  std::uint64_t seed = 0;
};

class Describer {
 public:
  virtual ~Describer() = default;
  const std::string& id() const { return id_; }      // "dissect"
  const std::string& spec() const { return spec_; }  // every option resolved

  // For each layer of the exemplars, words for each of its neurons.
  std::vector<std::vector<NeuronWords>> describe(const DescribeTask& task);

 private:
  friend std::unique_ptr<Describer> make_describer(const Spec& spec);
  virtual std::vector<std::vector<NeuronWords>> run(const DescribeTask& task) = 0;

  std::string id_;
  std::string spec_;
};

using DescriberRegistry = Registry<std::unique_ptr<Describer>>;
const DescriberRegistry& describers();
std::unique_ptr<Describer> make_describer(const Spec& spec);

}  // namespace galvani
