#include "galvani/fuzz/calibrate.h"

#include <fmt/format.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/fuzz/guide.h"
#include "galvani/model/evaluate.h"
#include "galvani/quality/statistics.h"
#include "model_flags.h"
#include "path_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct CalibrateFlags {
  ModelFlags model;
  std::string data;
  std::string describe;
  std::string guide = "nsgen";
  std::string share = "1%";
  std::string output;
  CalibrateOptions options;

  std::string written() const { return output.empty() ? describe : output; }
};

double parse_share(const std::string& text) {
  Options parsed("calibrate", {{"share", 1.0, "", 0.0, 100.0, {}}},
                 Spec{"calibrate", {{"share", text.substr(0, text.find('%'))}}});
  double value = parsed.real("share");
  if (text.empty() || text.back() != '%' || value <= 0)
    bad_usage("--share is '{}', but must be a percentage of each class, such as 1%", printable(text));
  return value / 100;
}

void run(const Common& common, CalibrateFlags& flags) {
  PathOptions paths = path_options(flags.guide);
  flags.options.share = parse_share(flags.share);
  flags.options.seed = common.seed;
  auto [network, data] = load_with_data(flags.model, flags.data, "train");
  Descriptions descriptions = Descriptions::load(flags.describe, *network);
  PathFinder finder(*network, descriptions, paths, path_class_names(*network, data));
  Calibrated found = calibrate(finder, *network, data, flags.options);
  const Calibration& record = found.record;
  auto same = [&](const Calibration& c) { return c.paths == record.paths; };
  auto& known = descriptions.calibrations;
  known.erase(std::remove_if(known.begin(), known.end(), same), known.end());
  known.push_back(record);
  descriptions.save(flags.written());
  std::vector<bool> wrong(found.wrong.begin(), found.wrong.end());
  Correlation faults = point_biserial(wrong, found.similarity);
  auto failures = std::count(wrong.begin(), wrong.end(), true);
  if (common.json) {
    common.give({{"output", flags.written()},
                 {"paths", record.paths},
                 {"data", record.data},
                 {"mutators", record.generator},
                 {"inputs", record.inputs},
                 {"mutants", record.mutants},
                 {"quantile", record.quantile},
                 {"tau", record.tau},
                 {"quartiles", {record.quartiles[0], record.quartiles[1], record.quartiles[2]}},
                 {"below", record.below},
                 {"same_words", record.same_words},
                 {"wrong", failures},
                 {"correlation", {{"r", faults.r}, {"p", faults.p}}}});
    return;
  }
  say("threshold {:.4f}: the quantile {} of {} similarities ({} inputs of {}, {} rules each)\n", record.tau,
      record.quantile, format_count(record.mutants), format_count(record.inputs), printable(record.data),
      found.rules.size());
  say("quartiles {:.4f}, {:.4f}, {:.4f}; {:.1f}% are below the threshold, {:.1f}% have the words of their original\n",
      record.quartiles[0], record.quartiles[1], record.quartiles[2], record.below * 100, record.same_words * 100);
  say("{} of the mutants are taken for another class; with similarity that goes together by r {:.3f} (point-biserial, "
      "p {:.2g})\n",
      format_count(failures), faults.r, faults.p);
  say("{}: recorded; guide nsgen:describe={} uses it with the same options of paths\n", flags.written(),
      flags.written());
}

}  // namespace

void add_calibrate_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<CalibrateFlags>();
  Verb& verb = make_verb(app, common, "calibrate", "find NSGen's threshold of similarity, and record it",
                         "  galvani calibrate lenet5.onnx --describe neurons.json --data mnist:train\n"
                         "  galvani calibrate resnet20.onnx --describe neurons.json --data cifar10:train "
                         "--guide nsgen:steps=16,rule=trapezoid\n"
                         "  galvani calibrate m.onnx --describe neurons.json --data photos/ --share 50%");
  runs_models(verb, common, [flags] { return Confinement{{}, {flags->written()}}; });
  flags->model.add_to(verb);
  verb.add_option("--describe", flags->describe, "file of 'galvani describe'").required();
  verb.add_option("--data", flags->data, "inputs whose mutants are looked at: training data").required();
  verb.add_option("--guide", flags->guide, "nsgen with the options that the campaign will have").show_default();
  verb.add_option("--share", flags->share, "of the inputs of each class").show_default();
  verb.add_option("--least", flags->options.least, "inputs of each class at least")
      .check(Range<std::int64_t>(1, 1 << 20))
      .show_default();
  verb.add_option("--quantile", flags->options.quantile, "of the similarities that is the threshold")
      .check(Range<double>(0, 1))
      .show_default();
  verb.add_option("--mutators", flags->options.mutators, "catalogue whose rules are all tried on each input")
      .show_default();
  verb.add_option("-o,--output", flags->output, "file to write (default: the file of descriptions)");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
