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
  void add_to(Verb& verb);
};

// The criteria's table, for --list.
void list_criteria(const Common& common);

}  // namespace galvani::cli
