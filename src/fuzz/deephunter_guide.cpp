// DeepHunter as the Revisiting study uses it (V-B): a coverage criterion with DeepHunter's transformations, all of them
// or one of the two groups (DH-D, DH-N). Its mutators and scheduler are defaults of the campaign (guide_defaults).
#include "fuzz/builtin.h"

namespace galvani {

GuideEntry deephunter_guide_entry() {
  OptionSchema schema = {
      {"group",
       std::string("all"),
       "transformations: differentiable, non-differentiable or all",
       {},
       {},
       {"d", "n", "all"}},
      {"criterion", std::string("kmnc"), "the criterion, such as kmnc:k=1000", {}, {}, {}},
  };
  return {{"deephunter", "coverage with the transformations of DeepHunter", schema,
           [](const Options& options, const GuideContext& context) {
             return make_criterion_guide(Spec::parse(options.text("criterion")), context);
           }},
          {[](const Options& options) { return std::vector<Spec>{Spec::parse(options.text("criterion"))}; },
           [](const Options& options) {
             GuideDefaults defaults;
             defaults.generator = "mutate:set=deephunter:group=" + options.text("group");
             defaults.scheduler = "decay";
             return defaults;
           }}};
}

}  // namespace galvani
