#include "galvani/fuzz/method.h"

#include <fmt/format.h>

#include "galvani/base/error.h"
#include "galvani/base/options.h"

namespace galvani {
namespace {

Method by_guide(const std::string& name, const std::string& help, const std::string& guide) {
  Method method{name, help, {}};
  method.settings.guide = guide;
  method.settings.scheduler = "decay";  // of all the papers so far
  return method;
}

// As the authors' program runs, which is not quite what their paper says: wider bounds of validity, none for style,
// coverage that starts from what the training sample covers, and seeds that the model gets wrong.
Method nlc() {
  Method method = by_guide("nlc", "neuron layer coverage, as its authors' program runs it", "nlc");
  method.settings.generator = "mutate:validity=nlc-code";
  method.settings.absorb = "train";
  method.settings.wrong_seeds = "keep";
  return method;
}

// Algorithm 1: a seed gives mutants until one is kept.
Method nsgen() {
  Method method = by_guide("nsgen", "keeps what is decided for other reasons, said in words (NSGen)", "nsgen");
  method.settings.stop_at_kept = true;
  return method;
}

// A search through gradients finds at its first try what it can find: every seed is tried once before any again.
Method by_search(const std::string& name, const std::string& help, std::int64_t energy) {
  Method method = by_guide(name, help, "nc");
  method.settings.generator = name;
  method.settings.scheduler = "sweep";
  method.settings.energy = energy;
  method.settings.batch = 64;
  return method;
}

// The swarm itself says which inputs are worth going on from, so that nothing else is kept.
Method deepsensor() {
  Method method = by_guide("deepsensor", "a swarm of particles in search of excitable neurons", "none");
  method.settings.generator = "swarm";
  method.settings.scheduler = "once";
  return method;
}

// Algorithm 1: ten examples of a parent (N1, which the paper leaves open), the five most similar of them (K).
Method cagfuzz() {
  Method method =
      by_guide("cagfuzz", "examples of a network trained on the data: --aeg and --reference name the files", "cagfuzz");
  method.settings.scheduler.clear();  // the guide's
  method.settings.energy = 10;
  return method;
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> all = {
      by_guide("deephunter", "coverage with all transformations of DeepHunter", "deephunter"),
      by_guide("dh-d", "the same with the differentiable ones (the Revisiting study)", "deephunter:group=d"),
      by_guide("dh-n", "the same with the others", "deephunter:group=n"),
      nlc(),
      nsgen(),
      by_search("deepxplore", "inputs on which models differ: --with names the others", 3),
      by_search("dlfuzz", "a few steps along the gradient to other classes and chosen neurons", 4),
      deepsensor(),
      cagfuzz(),
      by_guide("random", "keeps every valid candidate: the control", "random"),
  };
  return all;
}

const Method& find_method(const std::string& name) {
  std::vector<std::string> names;
  for (const Method& method : methods()) {
    if (method.name == name) return method;
    names.push_back(method.name);
  }
  std::string near = nearest_word(name, names);
  if (!near.empty()) bad_usage("there is no method called '{}'; did you mean '{}'?", printable(name), near);
  bad_usage("there is no method called '{}'; known are {}", printable(name), fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace galvani
