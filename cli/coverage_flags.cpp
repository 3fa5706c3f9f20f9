#include "coverage_flags.h"

#include <fmt/format.h>

#include "cover_dpd.h"
#include "galvani/base/log.h"
#include "galvani/base/table.h"
#include "galvani/coverage/criterion.h"
#include "galvani/data/spec.h"
#include "list_json.h"

namespace galvani::cli {

void NeuronFlags::add_to(Verb& verb) {
  verb.add_option("--taps", taps, "taps to observe: default, relu, all, or names and globs").show_default();
  verb.add_option("--neurons", neurons, "what a neuron is: a channel (its mean over space) or every unit")
      .check(OneOf{{"channel", "unit"}})
      .show_default();
}

Tracer NeuronFlags::tracer(Network& network) const {
  return {network, network.select_taps(taps), neurons == "unit" ? NeuronUnit::unit : NeuronUnit::channel};
}

void ProfileFlags::add_to(Verb& verb) {
  verb.add_option("--profile", file, "what is known of the training data: a file of `galvani profile`");
  verb.add_option("--train", train, "training data to make a profile from on the spot");
  verb.add_option("--profile-size", size, "how many inputs of --train are drawn: a number, or all").show_default();
}

void ProfileFlags::take_own_split(const std::string& data) {
  if (given()) return;
  train = training_split_of(data);
  own_split = !train.empty();
}

void ProfileFlags::tell(const std::string& what, const std::string& flag) const {
  if (own_split) log::info("{}, compared with {} ({}, --train and --profile say otherwise)", what, train, flag);
}

void list_criteria(const Common& common) {
  if (common.json) {
    Json all = Json::array();
    for (const auto& entry : galvani::criteria().entries())
      all.push_back(entry_json(entry.name, entry.help, entry.schema));
    all.push_back(entry_json("dpd", kDpdHelp, dpd_schema()));
    common.give({{"criteria", all}});
    return;
  }
  Table table({"criterion", "counts", "options (default)"});
  auto add = [&](const std::string& name, const std::string& help, const OptionSchema& schema) {
    std::string options;
    for (const OptionInfo& option : schema) {
      std::string value = to_string(option.fallback);
      options += fmt::format("{}{}={}", options.empty() ? "" : ", ", option.name, value.empty() ? "..." : value);
    }
    table.add({name, help, options});
  };
  for (const auto& entry : galvani::criteria().entries()) add(entry.name, entry.help, entry.schema);
  add("dpd", kDpdHelp, dpd_schema());
  say("{}", table.str());
}

}  // namespace galvani::cli
