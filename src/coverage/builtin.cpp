// The table of criteria, and what each reads of a profile.
#include "coverage/builtin.h"

#include <map>

namespace galvani {

const CriterionRegistry& criteria() {
  static const CriterionRegistry registry(
      "criterion", {nc_entry(), nac_entry(), kmnc_entry(), nbc_entry(), snac_entry(), tknc_entry(), tknp_entry(),
                    cc_entry(), lsc_entry(), dsc_entry(), mdsc_entry(), cac_entry(), nlc_entry(), npc_entry()});
  return registry;
}

std::vector<std::string> profile_parts(const Spec& criterion, const TraceLayout& layout) {
  using Parts = std::vector<std::string> (*)(const Options&, const TraceLayout&);
  static const std::map<std::string, Parts> parts = {
      {"kmnc", ranges_part},   {"nbc", ranges_part},     {"snac", ranges_part}, {"lsc", reference_part},
      {"dsc", reference_part}, {"mdsc", reference_part}, {"cac", cac_parts},    {"npc", paths_part},
  };
  Options options = criteria().options(criterion);
  auto found = parts.find(criterion.name);
  return found == parts.end() ? std::vector<std::string>() : found->second(options, layout);
}

}  // namespace galvani
