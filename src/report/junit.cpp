#include "galvani/report/junit.h"

#include <fmt/format.h>

#include "galvani/base/error.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

std::string xml(const std::string& text) {
  return escape_markup(printable(text, 2000));
}

}  // namespace

std::string junit_xml(const JunitSuite& suite, const std::vector<Gate>& gates, const Figures& figures) {
  std::size_t failures = 0, skipped = 0;
  std::string cases;
  for (const Gate& gate : gates) {
    bool met = gate.met(figures);
    failures += met ? 1 : 0;
    cases += fmt::format(R"(    <testcase name="{}" classname="{}" time="{:.3f}")", xml("not " + gate.text()),
                         xml(suite.subject), suite.seconds);
    if (!met) {
      cases += "/>\n";
      continue;
    }
    cases += fmt::format(">\n      <failure message=\"{}\">\n",
                         xml(fmt::format("{}: it is {}", gate.text(), gate.value_text(figures))));
    for (const std::string& line : suite.details) cases += xml(line) + "\n";
    cases += "      </failure>\n    </testcase>\n";
  }
  for (const JunitCase& one : suite.cases) {
    failures += one.failure.empty() ? 0 : 1;
    skipped += one.failure.empty() && !one.skipped.empty() ? 1 : 0;
    cases += fmt::format(R"(    <testcase name="{}" classname="{}")", xml(one.name), xml(suite.subject));
    if (!one.failure.empty()) {
      cases += fmt::format("><failure message=\"{}\"/></testcase>\n", xml(one.failure));
    } else {
      cases += one.skipped.empty() ? "/>\n" : fmt::format("><skipped message=\"{}\"/></testcase>\n", xml(one.skipped));
    }
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" "
      "failures=\"{}\" errors=\"0\"{} time=\"{:.3f}\">\n{}  </testsuite>\n</testsuites>\n",
      xml(suite.name), gates.size() + suite.cases.size(), failures,
      skipped > 0 ? fmt::format(" skipped=\"{}\"", skipped) : "", suite.seconds, cases);
}

std::vector<std::string> fault_lines(const CampaignReader& reader, std::int64_t most) {
  std::vector<std::string> lines;
  FaultFilter filter;
  filter.most = most;
  filter.by_turns = true;
  reader.for_each_fault(filter, [&](const FaultRecord& fault) {
    std::string taken =
        fault.predicted == kNotANumber
            ? fmt::format("has scores that are {}", kNotANumberName)
            : fmt::format("taken for {} ({:.1f}%)", reader.class_name(fault.predicted), fault.confidence * 100);
    lines.push_back(fmt::format("{}: {} ({}) {} after {}", fault.file, reader.seed_name(fault.seed),
                                reader.class_name(fault.label), taken, fault.rule));
  });
  return lines;
}

}  // namespace galvani
