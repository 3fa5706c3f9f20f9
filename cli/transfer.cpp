#include "galvani/quality/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/log.h"
#include "galvani/base/output_file.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/report/replay.h"
#include "gate_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct TransferFlags {
  std::vector<std::string> runs;
  std::vector<std::string> models;
  std::int64_t most = 10000;
  std::string plot;
  std::string output;
  GateFlags gates;
};

// The models of the campaigns first, then those that were named, each once.
std::vector<std::unique_ptr<Network>> load_models(const std::vector<std::unique_ptr<CampaignReader>>& readers,
                                                  const TransferFlags& flags) {
  std::vector<std::unique_ptr<Network>> models;
  auto known = [&](const std::string& sha256) {
    return std::any_of(models.begin(), models.end(), [&](const auto& model) { return model->info().sha256 == sha256; });
  };
  for (const auto& reader : readers) {
    if (!known(reader->record().model_sha256)) models.push_back(load_campaign_model(reader->record()));
  }
  for (const std::string& path : flags.models) {
    Network::Options options;
    // Asked what the campaigns' models were.
    options.flags.task = readers.front()->record().preprocess.task;
    at::Tensor seed = readers.front()->image(readers.front()->seeds().at(0).id);
    options.data_shape = seed.sizes().vec();
    std::unique_ptr<Network> model = Network::load(path, options);
    if (model->info().classes != readers.front()->classes())
      bad_usage("{}: knows {} classes, the campaign's model {}", path, model->info().classes,
                readers.front()->classes());
    if (!known(model->info().sha256)) models.push_back(std::move(model));
  }
  return models;
}

void print(const Transfer& transfer) {
  std::vector<std::string> heads = {"tests of", ">tests"};
  for (const std::string& model : transfer.models) heads.push_back(">" + printable(model, 24));
  Table table(heads);
  for (const TransferRow& row : transfer.rows) {
    std::vector<std::string> line = {printable(row.name), format_count(row.cells.front().tests)};
    for (const TransferCell& cell : row.cells)
      line.push_back(cell.right == 0 ? "-"
                                     : fmt::format("{} of {}, {:.1f}%{}", format_count(cell.broken),
                                                   format_count(cell.right), cell.rate() * 100, cell.own ? " *" : ""));
    table.add(line);
  }
  say("{}", table.str());
  say("tests that break a model, of those whose original it gets right; *: the model they were found with\n");
  if (!std::isnan(transfer.mean()))
    say("on other models {:.1f}% on average, {:.1f}% at most\n", transfer.mean() * 100, transfer.highest() * 100);
}

void run(Common& common, const TransferFlags& flags) {
  flags.gates.check(names_of(figures_of(Transfer())));
  if (!flags.plot.empty()) check_output(flags.plot);
  std::vector<std::unique_ptr<CampaignReader>> readers;
  std::vector<std::unique_ptr<TestSet>> tests;
  std::vector<TransferSource> sources;
  for (const std::string& folder : flags.runs) {
    readers.push_back(std::make_unique<CampaignReader>(folder));
    tests.push_back(campaign_tests(*readers.back()));
    if (tests.back()->size() == 0) log::warn("{}: has no faults, so nothing of it can transfer", folder);
    sources.push_back({folder, readers.back()->record().model_sha256, tests.back().get()});
  }
  std::vector<std::unique_ptr<Network>> models = load_models(readers, flags);
  if (models.size() < 2) bad_usage("there is no other model to transfer to: name some with --models");
  std::vector<Network*> borrowed;
  borrowed.reserve(models.size());
  for (const auto& model : models) borrowed.push_back(model.get());
  Transfer transfer = measure_transfer(sources, borrowed, flags.most, common.seed);
  if (!flags.plot.empty()) write_file(flags.plot, transfer_svg(transfer));
  if (!flags.output.empty()) write_file(flags.output, json_text(as_json(transfer), 1) + "\n");
  if (common.json) {
    common.give(as_json(transfer));
  } else {
    print(transfer);
  }
  flags.gates.judge(common, figures_of(transfer), {"galvani transfer", flags.runs.front(), 0, {}});
}

}  // namespace

void add_transfer_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<TransferFlags>();
  Verb& verb = make_verb(app, common, "transfer", "say whether what breaks one model breaks others",
                         "  galvani transfer run1 --models lenet1.onnx lenet4.onnx\n"
                         "  galvani transfer run1 run4 run5 --plot transfer.svg         every one on every model\n"
                         "  galvani transfer attack1 --models other.onnx --fail-if \"highest>50%\"\n"
                         "Campaigns and attacks alike. A test counts on a model that gets its original right.");
  runs_models(verb, common, [flags] { return Confinement{{}, {flags->plot, flags->output, flags->gates.junit}}; });
  verb.add_option("runs", flags->runs, "folders of campaigns or attacks").required();
  verb.add_option("--models", flags->models, "other models (those of the campaigns are always there)");
  verb.add_option("--most", flags->most, "faults of each to look at, drawn at random where there are more; 0: all")
      .check(Range<std::int64_t>(0, std::int64_t{1} << 40))
      .show_default();
  verb.add_option("--plot", flags->plot, "write a heat map as SVG to this file");
  verb.add_option("-o,--output", flags->output, "write the result as JSON to this file");
  flags->gates.add_to(verb, "transfer>0.5");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
