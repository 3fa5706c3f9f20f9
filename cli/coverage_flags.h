// The flags of verbs that look at neurons.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flags.h"
#include "galvani/coverage/profile_source.h"
#include "galvani/trace/trace.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {

struct NeuronFlags {
  std::string taps = "default";
  std::string neurons = "channel";

  void add_to(Verb& verb);
  Tracer tracer(Network& network) const;
};

// Where what is known of the training data comes from.
struct ProfileFlags : ProfileSource {
  bool own_split = false;  // --train was not given: it is the training split of a known data set

  void add_to(Verb& verb);
  bool given() const { return !file.empty() || !train.empty(); }
  // Where neither a profile nor training data were given, a known data set has training data of its own.
  void take_own_split(const std::string& data);
  // Says what `what`, which `flag` chooses, is compared with where nobody did.
  void tell(const std::string& what, const std::string& flag) const;
};

// The criteria's table, for --list.
void list_criteria(const Common& common);

}  // namespace galvani::cli
