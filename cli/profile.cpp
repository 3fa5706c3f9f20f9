#include <fmt/format.h>

#include "coverage_flags.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/text.h"
#include "galvani/coverage/criterion.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct ProfileVerbFlags {
  ModelFlags model;
  NeuronFlags neurons;
  std::string data;
  std::string criteria;
  std::string size = "all";
  std::string output;
};

void run(const Common& common, ProfileVerbFlags& flags) {
  flags.model.options.any_task = true;
  auto [network, data] = load_with_data(flags.model, flags.data, "train");
  Tracer tracer = flags.neurons.tracer(*network);
  std::vector<Spec> criteria;
  if (flags.criteria.empty()) {
    for (const std::string& name : galvani::criteria().names()) criteria.push_back(Spec::parse(name));
  } else {
    criteria = Spec::parse_list(flags.criteria);
  }
  auto profile = learn_profile(tracer, criteria, data, parse_profile_size(flags.size), common.seed);
  if (profile->empty()) log::warn("none of these criteria needs a profile; the file is empty");
  profile->save(flags.output);
  if (common.json) {
    Json j = {{"profile", flags.output},     {"model", network->info().path}, {"data", profile->data},
              {"inputs", profile->inputs()}, {"dropped", profile->dropped()}, {"neurons", tracer.layout().neurons},
              {"parts", Json::array()}};
    for (const auto& [name, part] : profile->parts())
      j["parts"].push_back({{"name", name}, {"summary", part->summary()}});
    common.give(j);
    return;
  }
  say("{}: learned from {} ({}){}\n", flags.output, counted(profile->inputs(), "input"), profile->data,
      profile->dropped() > 0 ? fmt::format(", {} dropped as not finite", profile->dropped()) : "");
  for (const auto& [name, part] : profile->parts()) say("  {}\n", part->summary());
}

}  // namespace

void add_profile_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<ProfileVerbFlags>();
  Verb& verb = make_verb(app, common, "profile", "learn from training data what coverage criteria compare with",
                         "  galvani profile lenet5.onnx --data mnist:train -o lenet5.profile\n"
                         "  galvani profile lenet5.onnx --data mnist:train --criteria kmnc,dsc:tap=fc1 -o p.profile");
  runs_models(
      verb, common,
      [flags] {
        return Confinement{{}, {flags->output}};
      },
      Processes::many);
  flags->model.add_to(verb);
  flags->neurons.add_to(verb);
  verb.add_option("--data", flags->data, "training data").required();
  verb.add_option("--criteria", flags->criteria, "criteria it is for, with their options (default: all)");
  verb.add_option("--profile-size", flags->size, "how many inputs are drawn: a number, or all").show_default();
  verb.add_option("-o,--output", flags->output, "file to write").required();
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
