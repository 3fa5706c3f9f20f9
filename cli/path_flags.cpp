#include "path_flags.h"

#include "galvani/base/error.h"
#include "galvani/fuzz/guide.h"
#include "galvani/model/evaluate.h"

namespace galvani::cli {

PathOptions path_options(const std::string& guide) {
  Spec spec = Spec::parse(guide);
  if (spec.name != "nsgen") bad_usage("--guide is '{}', but only nsgen follows paths", printable(guide));
  return PathOptions::from(guides().options(spec));
}

std::vector<std::string> path_class_names(const Network& network, const Labelled& data) {
  std::vector<std::string> names;
  for (std::int64_t label = 0; label < network.info().classes; ++label)
    names.push_back(verdict_name(network, data, label));
  return names;
}

}  // namespace galvani::cli
