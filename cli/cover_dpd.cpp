#include "cover_dpd.h"

#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/fuzz/guide.h"
#include "path_flags.h"
#include "verb.h"

namespace galvani::cli {

OptionSchema dpd_schema() {
  return guides().at("nsgen").schema;
}

std::optional<Spec> take_dpd(std::string& criteria) {
  std::vector<Spec> all = Spec::parse_list(criteria);
  auto found = std::find_if(all.begin(), all.end(), [](const Spec& spec) { return spec.name == "dpd"; });
  if (found == all.end()) return std::nullopt;
  Spec dpd = *found;
  all.erase(found);
  criteria.clear();
  for (const Spec& spec : all) criteria += (criteria.empty() ? "" : ",") + spec.str();
  return dpd;
}

Discrepancy measure_dpd(const Spec& spec, Network& network, const DataView& inputs, const DataView& originals) {
  Spec as_guide = spec;
  as_guide.name = "nsgen";
  Options options = guides().options(as_guide);
  const std::string& file = options.text("describe");
  if (file.empty()) bad_usage("dpd needs descriptions of neurons: dpd:describe=neurons.json, of 'galvani describe'");
  Descriptions descriptions = Descriptions::load(file, network);
  PathFinder finder(network, descriptions, PathOptions::from(options), path_class_names(network, inputs));
  double tau = options.real("tau");
  for (const Calibration& known : descriptions.calibrations) {
    if (tau == 0 && known.paths == finder.spec()) tau = known.tau;
  }
  if (tau == 0) bad_usage("{}: has no threshold for these paths; 'galvani calibrate' finds one, or say tau=0.8", file);
  return measure_discrepancy(finder, network, inputs, originals, tau);
}

Json dpd_json(const Discrepancy& found) {
  return {{"score", found.score()},
          {"pairs", found.similarity.size()},
          {"below", found.below},
          {"tau", found.tau},
          {"mean_similarity", found.mean()}};
}

void print_dpd(const Discrepancy& found) {
  say("dpd: {:.2f}% of {} pairs are decided for other reasons (similarity below {:.4f}; mean {:.4f})\n",
      found.score() * 100, format_count(static_cast<std::int64_t>(found.similarity.size())), found.tau, found.mean());
}

}  // namespace galvani::cli
