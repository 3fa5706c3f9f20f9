#include <fmt/format.h>

#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/coverage/criterion.h"
#include "galvani/model/evaluate.h"
#include "report/section.h"

namespace galvani {
namespace {

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return fmt::format("{:.3g} ms", seconds * 1000);
}

Json figures(const CampaignReader& reader, const CampaignSummary& s) {
  const CampaignCounters& c = s.counters;
  Json all = Json::array();
  auto add = [&](const char* name, const std::string& value, const std::string& detail, const char* meaning,
                 bool main = false) {
    all.push_back({name, value, detail, main, meaning});
  };
  add("seeds broken", fmt::format("{:.1f}%", s.seeds.share() * 100), seeds_text(s.seeds),
      "inputs that the model gets right and that some change made wrong, of those that were tried", true);
  add("base accuracy", fmt::format("{:.1f}%", s.seeds.accuracy() * 100),
      fmt::format("{} of {} right as they are{}", format_count(s.seeds.right), counted(s.seeds.looked_at, "input"),
                  reader.record().preprocess_assumed ? "; preprocessing is assumed" : ""),
      "how often the model is right before anything is changed");
  add("faults", format_count(c.faults),
      fmt::format("{:.2f}% of {} valid mutants", s.rft_all * 100, format_count(c.valid)),
      "changed inputs that the model gets wrong", true);
  add("distinct faults", format_count(c.distinct_faults), fmt::format("different {}", reader.type().noun()),
      "faults without those whose image was found before", true);
  add("faults among kept", format_count(c.kept_faults),
      fmt::format("RFT {:.4f} of {} kept", s.rft, format_count(c.kept)),
      "RFT, rate of faults in tests: of the changed inputs that the guide kept, the share that are faults", true);
  if (s.not_a_number > 0)
    add(kNotANumberName, format_count(s.not_a_number), "faults whose scores are NaN or infinite",
        "the model gave no verdict at all", true);
  add("coverage", c.coverable > 0 || c.covered > 0 ? coverage_text({c.covered, c.coverable}) : "-",
      c.coverable > 0 ? fmt::format("{}, {} of {}", reader.record().settings.guide, coverage_text({c.covered, 0}),
                                    coverage_text({c.coverable, 0}))
                      : reader.record().settings.guide,
      "how much of what the guide can tell apart was reached");
  add("time per fault", c.faults > 0 ? seconds_text(s.fre_all) : "-",
      fmt::format("FRE (kept) {}", c.kept_faults > 0 ? seconds_text(s.fre) : "-"),
      "FRE, fault revealing efficiency: seconds of work for a kept fault");
  if (!reader.record().by_reference()) {
    add("classes", fmt::format("{}/{}", s.classes, reader.classes()),
        fmt::format("{} predicted, {} pairs", s.predicted, s.transitions), "true classes that faults were found in");
    add("impartiality (OI)", fmt::format("{:.3f}", s.impartiality), "evenness of predicted classes, 0 to 1",
        "OI, output impartiality: 1 if faults are taken for all classes equally often, 0 if for one");
  }
  double rate = s.seconds > 0 ? static_cast<double>(c.valid) / s.seconds : 0;
  add("work", format_duration(s.seconds),
      fmt::format("{}, {} mutants/s", counted(c.iterations, "iteration"),
                  format_count(static_cast<std::int64_t>(rate))),
      "time spent, sessions added up");
  return all;
}

Json settings(const CampaignReader& reader, const CampaignSummary& s) {
  const CampaignRecord& r = reader.record();
  const CampaignSettings& set = r.settings;
  const CampaignCounters& c = s.counters;
  Json all = Json::array();
  auto add = [&](const char* name, const std::string& value) { all.push_back({name, page_text(value)}); };
  if (std::string begun = reader.begun(); !begun.empty()) add("begun", begun);
  add("the same again", r.command());
  add("model", r.model);
  add("model, SHA-256", r.model_sha256);
  add("input", r.input);
  add("preprocessing", fmt::format("range {}, mean {}, std {}, {}, {} ({})", r.preprocess.range, r.preprocess.mean,
                                   r.preprocess.deviation, r.preprocess.channels, r.preprocess.layout,
                                   r.preprocess_assumed ? "assumed: the file does not say" : "as stated"));
  add("task", to_string(r.task()));
  if (!r.preprocess.tolerance.empty()) add("tolerance", r.preprocess.tolerance);
  if (!r.preprocess.threshold.empty()) add("threshold", r.preprocess.threshold);
  add("data", r.data);
  if (!r.profile.empty()) add("profile of training data", r.profile);
  if (!r.style.empty()) add("style source", r.style);
  add("guide", set.guide);
  add("generator", set.generator);
  add("scheduler", set.scheduler);
  add("seed of the campaign", std::to_string(set.seed));
  add("energy, batch", fmt::format("{}, {}", set.energy, set.batch));
  add("seeds, tried, broken", fmt::format("{}, {}, {}", format_count(s.seeds.seeds), format_count(s.seeds.tried),
                                          format_count(s.seeds.broken)));
  if (std::string changes = changes_text(s.seeds); !changes.empty()) add("smallest change that breaks", changes);
  add("inputs wrong from the start", format_count(static_cast<std::int64_t>(reader.wrong_seeds().size())));
  add("iterations", format_count(c.iterations));
  add("mutants, valid", fmt::format("{}, {}", format_count(c.mutants), format_count(c.valid)));
  add("kept, distinct", fmt::format("{}, {}", format_count(c.kept), format_count(c.distinct_kept)));
  add("faults, distinct, kept",
      fmt::format("{}, {}, {}", format_count(c.faults), format_count(c.distinct_faults), format_count(c.kept_faults)));
  add("faults whose scores are not a number", format_count(s.not_a_number));
  add("RFT (kept), all", fmt::format("{:.4f}, {:.4f}", s.rft, s.rft_all));
  add("FRE (kept), all", fmt::format("{}, {}", c.kept_faults > 0 ? seconds_text(s.fre) : "-",
                                     c.faults > 0 ? seconds_text(s.fre_all) : "-"));
  add("#Classes, OI", fmt::format("{}, {:.4f}", s.classes, s.impartiality));
  add("resets", format_count(c.resets));
  add("verdicts taken again alone", format_count(c.reexamined));
  add("time of work", format_duration(s.seconds));
  add("Galvani", r.version);
  return all;
}

class SummarySection : public Section {
 public:
  std::string name() const override { return "summary"; }
  Places make(const PageSubject& subject, Json& data, Page&) const override {
    data["figures"] = figures(subject.reader, subject.summary);
    data["settings"] = settings(subject.reader, subject.summary);
    return {};
  }
};

}  // namespace

std::unique_ptr<Section> make_summary_section() {
  return std::make_unique<SummarySection>();
}

}  // namespace galvani
