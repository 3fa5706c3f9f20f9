#include "gate_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/output_file.h"

namespace galvani::cli {

void GateFlags::add_to(Verb& verb, const std::string& example) {
  const char* group = "Continuous integration";
  verb.add_option("--fail-if", conditions,
                  fmt::format("exit 1 if this holds at the end, such as \"{}\"; may be repeated", example))
      .group(group);
  verb.add_option("--junit", junit, "write the conditions as JUnit XML").group(group);
}

void GateFlags::check(const std::vector<std::string>& names) const {
  parse_gates(conditions, names);
  if (!junit.empty() && conditions.empty() && usual.empty())
    bad_usage("--junit writes the conditions of --fail-if: give one, on {}", fmt::join(names, ", "));
  if (!junit.empty()) check_output(junit);
}

void GateFlags::judge(Common& common, const Figures& figures, JunitSuite suite,
                      const std::function<std::vector<std::string>()>& details) const {
  std::vector<Gate> gates = parse_gates(conditions, names_of(figures));
  for (const Gate& gate : gates) {
    if (!gate.met(figures)) continue;
    common.exit_code = 1;
    if (!common.json && !silent) say("failed: {} (it is {})\n", gate.text(), gate.value_text(figures));
  }
  if (junit.empty()) return;
  if (gates.empty()) gates.emplace_back(usual);
  bool any = std::any_of(gates.begin(), gates.end(), [&](const Gate& gate) { return gate.met(figures); });
  if (any && details) suite.details = details();
  write_file(junit, junit_xml(suite, gates, figures));
}

}  // namespace galvani::cli
