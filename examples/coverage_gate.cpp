// Galvani as a library: does the data exercise enough of a network, and does a short campaign find faults?
//
//   coverage_gate MODEL DATA CONDITION...      coverage_gate lenet5.onnx digits:test 'tknc<0.5' 'faults>0'
//
// Exit code 1 if a condition holds, 2 if something is wrong.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "galvani/base/files.h"
#include "galvani/base/runtime.h"
#include "galvani/coverage/cover.h"
#include "galvani/data/dataset.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/summary.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/network.h"
#include "galvani/trace/trace.h"

namespace {

galvani::Figures measure(const std::string& model, const std::string& spec) {
  galvani::Dataset data = galvani::load_data(spec);
  std::unique_ptr<galvani::Network> network = galvani::Network::load(model, {});
  galvani::Tracer tracer(*network, network->select_taps("default"), galvani::NeuronUnit::channel);

  galvani::CoverRequest request;
  request.criteria = "nc,tknc";
  galvani::Figures figures = figures_of(galvani::measure_coverage(tracer, data, request));
  figures.emplace_back("accuracy", evaluate(*network, data).accuracy);

  galvani::TemporaryFolder folder("coverage-gate");
  galvani::CampaignSettings settings;
  settings.guide = "tknc";
  settings.seeds = 50;
  galvani::Budget budget;
  budget.iterations = 32;
  galvani::Campaign(folder / "run", settings, {tracer, data, nullptr, ""}).run(budget, {});
  galvani::CampaignSummary summary = summarise(galvani::CampaignReader(folder / "run"));
  figures.emplace_back("faults", static_cast<double>(summary.counters.faults));
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: coverage_gate MODEL DATA CONDITION...\n");
    return 2;
  }
  try {
    galvani::init_runtime();
    galvani::Figures figures = measure(argv[1], argv[2]);
    for (const auto& [name, value] : figures) std::printf("%s %g\n", name.c_str(), value);
    bool failed = false;
    for (const galvani::Gate& gate : galvani::parse_gates({argv + 3, argv + argc}, galvani::names_of(figures))) {
      if (!gate.met(figures)) continue;
      std::printf("failed: %s\n", gate.text().c_str());
      failed = true;
    }
    return failed ? 1 : 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "error: %s\n", problem.what());
    return 2;
  }
}
