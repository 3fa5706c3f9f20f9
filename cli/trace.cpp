#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "coverage_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"
#include "galvani/base/text.h"
#include "galvani/coverage/criterion.h"
#include "galvani/coverage/surprise.h"
#include "galvani/data/npy.h"
#include "galvani/model/evaluate.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct TraceFlags {
  ModelFlags model;
  NeuronFlags neurons;
  ProfileFlags profile;
  std::string data;
  std::string scores;
  std::string output;
};

void run(const Common& common, TraceFlags& flags) {
  flags.model.options.any_task = true;
  auto [network, data] = load_with_data(flags.model, flags.data);
  Tracer tracer = flags.neurons.tracer(*network);
  const TraceLayout& layout = tracer.layout();
  std::uint64_t bytes = static_cast<std::uint64_t>(data.size() * (layout.neurons + layout.classes)) * 8;
  if (bytes > available_memory())
    bad_usage("the traces of {} inputs and {} neurons need {}: take fewer inputs or taps", data.size(), layout.neurons,
              format_bytes(bytes));

  std::vector<std::unique_ptr<SurpriseScore>> scores;
  std::vector<Spec> score_specs = flags.scores.empty() ? std::vector<Spec>() : Spec::parse_list(flags.scores);
  std::shared_ptr<const Profile> profile;
  if (!score_specs.empty()) {
    std::vector<Spec> criteria;
    for (const Spec& score : score_specs) criteria.push_back(surprise_criterion(score));
    profile = find_profile(tracer, criteria, flags.profile, common.seed);
    if (profile == nullptr) bad_usage("--scores compares with training data: give --profile or --train");
    for (const Spec& score : score_specs) scores.push_back(make_surprise(score, layout, *profile));
  }

  at::Tensor values = at::empty({data.size(), layout.neurons});
  at::Tensor logits = at::empty({data.size(), layout.classes});
  std::vector<std::vector<double>> surprise(scores.size());
  std::int64_t unusable = 0;
  tracer.stream(data, "tracing", [&](const Traces& traces, std::int64_t first) {
    values.narrow(0, first, traces.size()).copy_(traces.values);
    logits.narrow(0, first, traces.size()).copy_(traces.logits);
    unusable += std::count(traces.usable.begin(), traces.usable.end(), 0);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      std::vector<double> part = scores[i]->score(traces);
      surprise[i].insert(surprise[i].end(), part.begin(), part.end());
    }
  });
  NamedTensors arrays;
  for (const TraceBlock& block : layout.blocks)
    arrays.emplace_back("tap/" + block.tap, values.narrow(1, block.first, block.count).contiguous());
  arrays.emplace_back("logits", logits);
  arrays.emplace_back("predicted", verdicts(logits));
  arrays.emplace_back("labels", data.labels);
  for (std::size_t i = 0; i < scores.size(); ++i)
    arrays.emplace_back("score/" + score_specs[i].str(), at::tensor(surprise[i], at::kDouble));
  write_npz(flags.output, arrays);
  if (common.json) {
    Json j = {{"output", flags.output},
              {"inputs", data.size()},
              {"not_finite", unusable},
              {"neurons", layout.neurons},
              {"taps", Json::array()}};
    for (const TraceBlock& block : layout.blocks) j["taps"].push_back({{"tap", block.tap}, {"neurons", block.count}});
    common.give(j);
  } else {
    say("{}: traces of {}, {} in {}\n", flags.output, counted(data.size(), "input"), counted(layout.neurons, "neuron"),
        counted(static_cast<std::int64_t>(layout.blocks.size()), "tap"));
  }
  if (unusable > 0)
    log::warn("{}: {} of {} inputs have NaN or infinite values; they are written as they are{}", data.name, unusable,
              data.size(), scores.empty() ? "" : " and have no scores (NaN)");
  for (const auto& score : scores) {
    for (const std::string& note : score->notes()) log::info("note: {}", note);
  }
}

}  // namespace

void add_trace_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<TraceFlags>();
  Verb& verb = make_verb(app, common, "trace", "write what the neurons say about inputs, for NumPy and others",
                         "  galvani trace lenet5.onnx --data mnist:test -o traces.npz\n"
                         "  galvani trace lenet5.onnx --data mnist:test --scores lsa,dsa --profile p -o t.npz");
  runs_models(
      verb, common,
      [flags] {
        return Confinement{{}, {flags->output}};
      },
      Processes::many);
  flags->model.add_to(verb);
  flags->neurons.add_to(verb);
  flags->profile.add_to(verb);
  verb.add_option("--data", flags->data, "inputs").required();
  verb.add_option("--scores", flags->scores, "surprise of each input as well: lsa, dsa, mdsa");
  verb.add_option("-o,--output", flags->output,
                  "NPZ file: tap/<name> [inputs, neurons], logits, predicted, labels, score/<name>")
      .required();
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
