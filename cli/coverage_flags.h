// The flags of verbs that look at neurons.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "galvani/coverage/profile.h"
#include "galvani/trace/trace.h"
#include "model_flags.h"

namespace galvani::cli {

struct NeuronFlags {
  std::string taps = "default";
  std::string neurons = "channel";

  void add_to(CLI::App& verb);
  Tracer tracer(Network& network) const;
};

// Where what is known of the training data comes from.
struct ProfileFlags {
  std::string file;
  std::string train;
  std::string size = "1000";

  void add_to(CLI::App& verb);
  // Null if the criteria need none. The file if one is named, else learned from --train.
  std::shared_ptr<const Profile> get(Tracer& tracer, const std::vector<Spec>& criteria, std::uint64_t seed) const;
};

// "1000" or "all" (0).
std::int64_t parse_profile_size(const std::string& text);

// The criteria's table, for --list.
std::string list_criteria();

}  // namespace galvani::cli
