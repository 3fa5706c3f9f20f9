// NSGen (Huang et al. 2024): a mutant is kept if the network decides on it for other reasons than on its original. The
// reasons are a decision path, said in the words that describe its neurons (docs/nsgen.md).
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "fuzz/builtin.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/fuzz/calibrate.h"
#include "galvani/model/evaluate.h"
#include "galvani/semantics/descriptions.h"
#include "galvani/semantics/path.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

// Descriptions that nobody gave: made of the campaign's data, and kept in the cache for the next time.
constexpr const char* kOwnLayers = "5";
constexpr std::int64_t kMostCalibrated = 100;  // inputs, where nobody calibrated
constexpr std::int64_t kLeastCalibrated = 2;   // of each class

fs::path own_file(const GuideContext& context) {
  std::string key = context.tracer.network().identity() + content_hash(context.data);
  return cache_folder() / "neurons" / (sha256(key).substr(0, 32) + ".json");
}

Descriptions own_descriptions(const GuideContext& context) {
  Network& network = context.tracer.network();
  fs::path file = own_file(context);
  std::error_code error;
  if (fs::exists(file, error)) {
    try {
      return Descriptions::load(file, network);
    } catch (const Error& e) {
      log::debug("{}; made anew", e.what());
    }
  }
  log::info("nsgen: no descriptions of neurons are given (describe=neurons.json); they are made of {} now",
            context.data.name);
  DataView data(context.data);
  Exemplars exemplars = find_exemplars(network, choose_layers(network, kOwnLayers), data);
  Descriptions made = describe(*make_describer(Spec::parse("dissect")), {network, exemplars, data, 0});
  fs::create_directories(file.parent_path(), error);
  made.save(file);
  return made;
}

const Calibration* find_calibration(const Descriptions& descriptions, const std::string& paths) {
  for (const Calibration& calibration : descriptions.calibrations) {
    if (calibration.paths == paths) return &calibration;
  }
  return nullptr;
}

// What calibrations that nobody made are kept under.
Calibration own_calibration(const GuideContext& context, const Descriptions& descriptions, PathFinder& finder) {
  Network& network = context.tracer.network();
  std::string key = descriptions.sha256() + finder.spec() + finder.files_sha256() + content_hash(context.data);
  fs::path file = cache_folder() / "neurons" / (sha256(key).substr(0, 32) + ".tau.json");
  Descriptions kept;
  std::error_code error;
  if (fs::exists(file, error)) {
    try {
      kept = Descriptions::load(file, network);
      if (const Calibration* found = find_calibration(kept, finder.spec())) return *found;
    } catch (const Error& e) {
      log::debug("{}; made anew", e.what());
    }
  }
  log::info("nsgen: no threshold is known for these paths (galvani calibrate); it is found on mutants of {} now",
            context.data.name);
  CalibrateOptions options;
  options.least = kLeastCalibrated;
  options.most = kMostCalibrated;
  kept = descriptions;
  kept.calibrations = {calibrate(finder, network, DataView(context.data), options).record};
  fs::create_directories(file.parent_path(), error);
  kept.save(file);
  return kept.calibrations[0];
}

std::string key_of(const at::Tensor& image, std::int64_t label) {
  at::Tensor whole = image.contiguous();
  return sha256({static_cast<const char*>(whole.data_ptr()), whole.nbytes()}) + std::to_string(label);
}

class NsgenGuide : public Guide {
 public:
  NsgenGuide(const Options& options, const GuideContext& context) : of_seed_(options.text("original") == "seed") {
    Network& network = context.tracer.network();
    const std::string& file = options.text("describe");
    Descriptions descriptions = file.empty() ? own_descriptions(context) : Descriptions::load(file, network);
    finder_ = std::make_unique<PathFinder>(network, descriptions, PathOptions::from(options), context.class_names);
    tau_ = options.real("tau");
    if (tau_ == 0) {
      const Calibration* known = find_calibration(descriptions, finder_->spec());
      tau_ = known != nullptr ? known->tau : own_calibration(context, descriptions, *finder_).tau;
    }
    passes_before_ = finder_->passes();
    files_ = sha256(fmt::format("{} {} {}", descriptions.sha256(), finder_->files_sha256(), tau_));
    network_ = &network;
  }

  GuideNeeds needs() const override { return {}; }
  std::string files_sha256() const override { return files_; }
  std::int64_t passes() const override { return finder_->passes() - passes_before_ + originals_; }
  // Decision path discrepancy (eq. 5): kept mutants per seed.
  Covered covered() const override {
    return {static_cast<double>(kept_) / static_cast<double>(std::max<std::int64_t>(1, seeds_)), 0};
  }
  bool full() const override { return false; }

 private:
  void run_absorb(const Judged& seeds, std::vector<double>&) override {
    seeds_ += std::count_if(seeds.seeds.begin(), seeds.seeds.end(), [](std::int64_t id) { return id > 0; });
  }

  void run(const Judged& mutants, std::vector<Decision>& decisions) override {
    std::vector<const DecisionPath*> originals = paths_of_originals(mutants);
    std::vector<DecisionPath> paths =
        finder_->find(mutants.images, at::tensor(mutants.labels, at::kLong), mutants.logits);
    std::vector<std::pair<const DecisionPath*, const DecisionPath*>> pairs;
    for (std::size_t i = 0; i < paths.size(); ++i) pairs.emplace_back(originals[i], &paths[i]);
    std::vector<double> similar = finder_->similarity(pairs);
    const auto* predicted = mutants.predicted.data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < paths.size(); ++i) {
      Decision& decision = decisions[i];
      decision.keep = similar[i] < tau_;
      decision.gain = 1 - similar[i];
      if (decision.keep || predicted[i] != mutants.labels[i])
        decision.metadata = said_of(*originals[i], paths[i], similar[i]);
    }
    // It may become an original.
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (!decisions[i].keep) continue;
      ++kept_;
      known_.emplace(key_of(mutants.images[static_cast<std::int64_t>(i)], mutants.labels[i]), std::move(paths[i]));
    }
  }

  // Each is followed once, however many mutants it has.
  std::vector<const DecisionPath*> paths_of_originals(const Judged& mutants) {
    const std::vector<std::int64_t>& ids = of_seed_ ? mutants.seeds : mutants.parents;
    std::unordered_map<std::int64_t, std::string> keys;
    std::vector<at::Tensor> images;
    std::vector<std::int64_t> labels;
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto [place, is_new] = keys.try_emplace(ids[i]);
      if (!is_new) continue;
      at::Tensor image = mutants.corpus.image(ids[i]);
      place->second = key_of(image, mutants.labels[i]);
      if (known_.count(place->second) != 0) continue;
      if (std::find(missing.begin(), missing.end(), place->second) != missing.end()) continue;
      missing.push_back(place->second);
      images.push_back(image);
      labels.push_back(mutants.labels[i]);
    }
    if (!images.empty()) {
      at::Tensor all = at::stack(images);
      std::vector<DecisionPath> paths =
          finder_->find(all, at::tensor(labels, at::kLong), predict(*network_, all).logits);
      originals_ += all.size(0);
      for (std::size_t i = 0; i < paths.size(); ++i) known_.emplace(missing[i], std::move(paths[i]));
    }
    std::vector<const DecisionPath*> result;
    for (std::int64_t id : ids) result.push_back(&known_.at(keys.at(id)));
    return result;
  }

  // Words of the one that the other has not.
  std::string only_in(const DecisionPath& own, const DecisionPath& other) const {
    std::vector<std::string> theirs = finder_->said(other);
    std::vector<std::string> result;
    for (std::string& words : finder_->said(own)) {
      if (std::find(theirs.begin(), theirs.end(), words) == theirs.end()) result.push_back(std::move(words));
    }
    return fmt::format("{}", fmt::join(result, "; "));
  }

  std::string said_of(const DecisionPath& original, const DecisionPath& own, double similarity) const {
    Json said = {{"similarity", similarity},
                 {"threshold", tau_},
                 {"reasons", finder_->text(own)},
                 {"reasons of the original", finder_->text(original)}};
    std::vector<std::string> neurons;
    for (std::size_t i = 0; i < own.neurons.size(); ++i)
      neurons.push_back(
          fmt::format("{}/{}{}", finder_->layers()[i].tap, own.neurons[i],
                      own.neurons[i] == original.neurons[i] ? "" : fmt::format(" (not {})", original.neurons[i])));
    if (!neurons.empty()) {
      said["neurons"] = fmt::format("{}", fmt::join(neurons, ", "));
      said["came"] = only_in(own, original);
      said["went"] = only_in(original, own);
    }
    return json_text(said);
  }

  void run_reset() override { kept_ = 0; }
  void run_merge(const Guide& other) override {
    const auto& theirs = static_cast<const NsgenGuide&>(other);
    kept_ += theirs.kept_;
    for (const auto& [key, path] : theirs.known_) known_.emplace(key, path);
  }
  void run_save(ArchiveWriter& out) const override {
    out.put(kept_);
    out.put(seeds_);
    out.put(static_cast<std::uint64_t>(known_.size()));
    // In an order of its own, whatever the table's is.
    std::vector<const std::pair<const std::string, DecisionPath>*> sorted;
    for (const auto& entry : known_) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    for (const auto* entry : sorted) {
      out.put(entry->first);
      out.put(entry->second.neurons);
      out.put(entry->second.flows);
      out.put(entry->second.labels);
      out.put(entry->second.rise);
    }
  }
  void run_load(ArchiveReader& in) override {
    kept_ = in.get<std::int64_t>();
    seeds_ = in.get<std::int64_t>();
    auto count = in.get<std::uint64_t>();
    known_.clear();
    std::size_t layers = finder_->options().flows() ? finder_->layers().size() : 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string key = in.get_text();
      DecisionPath path;
      path.neurons = in.get_vector<std::int32_t>(layers);
      path.flows = in.get_vector<float>(layers);
      path.labels = in.get_vector<std::int64_t>();
      path.rise = in.get<double>();
      for (std::size_t layer = 0; layer < layers; ++layer) {
        auto neurons = static_cast<std::int32_t>(finder_->layers()[layer].neurons.size());
        if (path.neurons[layer] < 0 || path.neurons[layer] >= neurons) in.broken("holds a path that is none");
      }
      known_.emplace(std::move(key), std::move(path));
    }
  }

  bool of_seed_;
  Network* network_ = nullptr;
  std::unique_ptr<PathFinder> finder_;
  double tau_ = 0;
  std::string files_;
  std::int64_t passes_before_ = 0;
  std::int64_t originals_ = 0;
  std::int64_t kept_ = 0;
  std::int64_t seeds_ = 0;
  std::unordered_map<std::string, DecisionPath> known_;  // by pixels and label: originals, and what may become one
};

}  // namespace

GuideEntry nsgen_guide_entry() {
  OptionSchema schema = {
      {"describe", std::string(), "file of 'galvani describe'; none: made of the campaign's data", {}, {}, {}},
      {"tau", 0.0, "similarity below which a mutant is kept; 0: as calibrated", -1, 2, {}},
      {"original",
       std::string("parent"),
       "what a mutant is compared with: what it was made of, or the seed of its lineage",
       {},
       {},
       {"parent", "seed"}},
  };
  for (const OptionInfo& option : PathOptions::schema()) schema.push_back(option);
  return {{"nsgen", "keeps what is decided for other reasons than its original", schema,
           [](const Options& options, const GuideContext& context) -> std::unique_ptr<Guide> {
             return std::make_unique<NsgenGuide>(options, context);
           }},
          {nullptr, [](const Options&) {
             GuideDefaults defaults;
             defaults.scheduler = "decay";
             return defaults;
           }}};
}

}  // namespace galvani
