// DeepHunter as the Revisiting study uses it (V-B): a coverage criterion with DeepHunter's transformations, all of them
// or one of the two groups (DH-D, DH-N). Its mutators and scheduler are defaults of the campaign (guide_defaults).
#include "fuzz/builtin.h"

namespace galvani {

GuideEntry deephunter_guide_entry() {
  return {"deephunter",
          "coverage with the transformations of DeepHunter",
          {{"group",
            std::string("all"),
            "transformations: differentiable, non-differentiable or all",
            {},
            {},
            {"d", "n", "all"}},
           {"criterion", std::string("kmnc"), "the criterion, such as kmnc:k=1000", {}, {}, {}}},
          [](const Options& options, const GuideContext& context) {
            return make_criterion_guide(Spec::parse(options.text("criterion")), context);
          }};
}

}  // namespace galvani
