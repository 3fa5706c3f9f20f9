#include "galvani/repair/repair.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "galvani/attack/attack.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"
#include "repair/loop.h"
#include "repair/retrain.h"

namespace galvani {
namespace {

constexpr std::int64_t kValidation = 1000;  // clean images that are looked at after every epoch
constexpr std::int64_t kAttackedAtOnce = 500;
constexpr std::int64_t kBlendingPart = 5;

std::filesystem::path named(const std::filesystem::path& stem, const std::string& ending) {
  return stem.empty() ? stem : std::filesystem::path(stem.string() + ending);
}
std::filesystem::path round_checkpoint(const std::filesystem::path& stem, std::int64_t round) {
  return named(stem, fmt::format("-round{}", round));
}
std::filesystem::path control_checkpoint(const std::filesystem::path& stem, const std::string& control,
                                         std::int64_t round) {
  return named(stem, round > 0 ? fmt::format("-{}{}", control, round) : "-" + control);
}

Dataset sample_of(const Dataset& data, std::int64_t most, const Rng& rng) {
  if (data.size() <= most) return data;
  std::vector<std::int64_t> rows = Rng(rng).sample(data.size(), most);
  std::sort(rows.begin(), rows.end());
  Dataset result = data.subset(rows);
  result.name = fmt::format("{} ({} of them)", data.name, most);
  return result;
}

Verdicts attacked(Network& network, const Attack& attack, const Dataset& data, std::uint64_t seed) {
  Rng rng = Rng(seed).derive("measuring attack");
  std::vector<at::Tensor> predicted, right;
  Progress progress(attack.id(), data.size(), data.type().noun());
  for (std::int64_t first = 0; first < data.size(); first += kAttackedAtOnce) {
    check_interrupt();
    std::int64_t count = std::min(kAttackedAtOnce, data.size() - first);
    AttackTask task;
    task.inputs = data.images.narrow(0, first, count);
    task.labels = data.labels.narrow(0, first, count);
    for (std::int64_t i = 0; i < count; ++i) task.streams.push_back(rng.derive(static_cast<std::uint64_t>(first + i)));
    task.progress = [](std::int64_t) { check_interrupt(); };
    Attacked found = attack(network, task);
    predicted.push_back(found.predicted);
    right.push_back(found.right.logical_and(found.success.logical_not()));
    progress.advance(count);
  }
  progress.finish();
  return {at::cat(predicted), at::cat(right)};
}

// Sets, each judged by one network after the other.
class Sets {
 public:
  Sets(const RepairOptions& options, const Dataset& clean) : options_(options) {
    add(SetKind::clean, clean.name, clean);
    Dataset some = sample_of(clean, options.attacked, Rng(options.training.seed).derive("attacked"));
    for (const Spec& spec : options.attack_specs()) {
      attacks_.push_back(make_attack(spec));
      attacked_ = some;
      names_.push_back(spec.str());
    }
  }

  void add(SetKind kind, const std::string& name, const Dataset& data) {
    if (data.size() == 0) return;
    sets_.push_back({kind, name, {}});
    data_.push_back(data);
  }

  void judge_all(Network& network, const std::string& name) {
    while (sets_.size() < data_.size() + attacks_.size())
      sets_.push_back({SetKind::attacked, names_[sets_.size() - data_.size()], {}});
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      std::string title = fmt::format("{}: {}", name, to_string(sets_[i].kind));
      sets_[i].verdicts.push_back(
          i < data_.size() ? judge(network, data_[i], title)
                           : attacked(network, *attacks_[i - data_.size()], attacked_, options_.training.seed));
    }
  }

  std::vector<MeasuredSet> result() { return std::move(sets_); }

 private:
  const RepairOptions& options_;
  std::vector<MeasuredSet> sets_;
  std::vector<Dataset> data_;  // of the first sets
  std::vector<std::unique_ptr<Attack>> attacks_;
  std::vector<std::string> names_;
  Dataset attacked_;
};

class Repair {
 public:
  Repair(Network& network, const RepairData& data, const RepairOptions& options, const RepairListener& listener)
      : network_(network), data_(data), options_(options), listener_(listener) {}

  RepairResult run() {
    auto began = std::chrono::steady_clock::now();
    divide_tests();
    leave_out_trained_seeds();
    set_blending_aside();
    Sets sets(options_, result_.clean);
    for (const FoundTests& part : held_out_) sets.add(SetKind::held_out, part.images.name, part.images);
    for (const FoundTests& part : trained_) sets.add(SetKind::trained, part.images.name, part.images);
    validation_ = sample_of(result_.clean, kValidation, Rng(options_.training.seed).derive("validation"));
    judge_with(sets, network_, "before", 0);

    result_.network = network_.clone();
    if (options_.loop.parts > 0) {
      run_loop();
    } else {
      rounds_.push_back(join(trained_));
      retrain(*result_.network,
              {"repair", options_.training.checkpoint, data_.train, rounds_[0].images, validation_,
               !options_.adversarial.empty()},
              options_, listener_);
    }
    for (const std::string& control : options_.controls) run_control(control, sets);
    judge_with(sets, *result_.network, "after", blend(*result_.network));
    result_.sets = sets.result();
    FoundTests all = join(rounds_);
    result_.trained_tests = all.size();
    result_.trained_seeds = all.seed_count();
    result_.epochs = options_.training.epochs >= 0 ? options_.training.epochs
                                                   : chosen_epochs(data_.train.size(), all.size(), options_);
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return std::move(result_);
  }

 private:
  void judge_with(Sets& sets, Network& network, const std::string& name, double retrained) {
    sets.judge_all(network, name);
    result_.networks.push_back(name);
    result_.blends.push_back(retrained);
  }

  double blend(Network& network) {
    return blending_.size() == 0 ? 1 : blend_back(network, network_, blending_, options_.allowed_clean_loss());
  }

  void divide_tests() {
    if (options_.loop.parts > 0) {
      held_out_ = data_.tests;
      held_out_.push_back(mutants_of(network_, data_.clean, options_));
      return;
    }
    if (data_.tests.empty()) return;
    std::set<std::string> held = hold_out_seeds(data_.tests, options_.held_out, options_.training.seed);
    for (const FoundTests& part : data_.tests) {
      held_out_.push_back(part.subset(rows_of_seeds(part, held, true)));
      trained_.push_back(part.subset(rows_of_seeds(part, held, false)));
    }
  }

  // An image whose mutants are trained on says nothing about new ones.
  void leave_out_trained_seeds() {
    std::set<std::string> seeds;
    for (const FoundTests& part : trained_) seeds.insert(part.seeds.begin(), part.seeds.end());
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < data_.clean.size(); ++i) {
      if (seeds.count(pixels_of(data_.clean.images[i])) == 0) rows.push_back(i);
    }
    result_.clean_left_out = data_.clean.size() - static_cast<std::int64_t>(rows.size());
    if (rows.empty())
      bad_input("{}: every image of it is one that tests to train on were made of; measure on others with --clean",
                data_.clean.name);
    result_.clean = data_.clean;
    if (result_.clean_left_out > 0) keep_clean(rows);
  }

  // What the blend is chosen by is not measured on.
  void set_blending_aside() {
    std::int64_t size = result_.clean.size() / kBlendingPart;
    if (options_.allowed_clean_loss() >= 1 || size == 0) return;
    std::vector<std::int64_t> aside = Rng(options_.training.seed).derive("blending").sample(result_.clean.size(), size);
    std::sort(aside.begin(), aside.end());
    std::vector<std::int64_t> rest;
    for (std::int64_t i = 0; i < result_.clean.size(); ++i) {
      if (!std::binary_search(aside.begin(), aside.end(), i)) rest.push_back(i);
    }
    blending_ = result_.clean.subset(aside);
    result_.blended_on = size;
    keep_clean(rest);
  }

  void keep_clean(const std::vector<std::int64_t>& rows) {
    std::vector<std::int64_t> items;
    for (std::int64_t row : rows)
      items.push_back(result_.clean_items.empty() ? row : result_.clean_items[static_cast<std::size_t>(row)]);
    result_.clean = result_.clean.subset(rows);
    result_.clean.name = data_.clean.name;
    result_.clean_items = std::move(items);
  }

  void run_loop() {
    for (std::int64_t round = 1; round <= options_.loop.parts; ++round) {
      LoopFind find = find_round(*result_.network, data_.train, join(rounds_), round, options_);
      rounds_.push_back(std::move(find.kept));
      retrain(*result_.network,
              {fmt::format("round {}", round), round_checkpoint(options_.training.checkpoint, round), data_.train,
               join(rounds_).images, validation_, !options_.adversarial.empty()},
              options_, listener_);
      find.round.clean = judge(*result_.network, result_.clean, "clean").accuracy();
      double right = 0, all = 0;
      for (const FoundTests& part : held_out_) {
        if (part.size() == 0) continue;
        all += static_cast<double>(part.size());
        right += judge(*result_.network, part.images, "held out").accuracy() * static_cast<double>(part.size());
      }
      find.round.held_out = all > 0 ? right / all : std::numeric_limits<double>::quiet_NaN();
      result_.rounds.push_back(find.round);
    }
  }

  // The same trainings with the same number of steps; in the place of every test an image that is none.
  void run_control(const std::string& control, Sets& sets) {
    std::unique_ptr<Network> network = network_.clone();
    std::string name = "control " + control;
    std::vector<FoundTests> shown;
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      bool loop = options_.loop.parts > 0;
      auto round = static_cast<std::int64_t>(loop ? i + 1 : 0);
      FoundTests drawn;
      drawn.images =
          control_images(control, data_.train, rounds_[i], Rng(options_.training.seed).derive("repair").derive(i));
      shown.push_back(std::move(drawn));
      retrain(*network,
              {loop ? fmt::format("{}, round {}", name, round) : name,
               control_checkpoint(options_.training.checkpoint, control, round), data_.train, join(shown).images,
               validation_, false},
              options_, listener_);
    }
    judge_with(sets, *network, name, blend(*network));
  }

  Network& network_;
  const RepairData& data_;
  const RepairOptions& options_;
  const RepairListener& listener_;
  std::vector<FoundTests> held_out_, trained_;  // of each source
  std::vector<FoundTests> rounds_;              // what each training had in addition to those before
  Dataset validation_;
  Dataset blending_;  // clean images that the blend is chosen by
  RepairResult result_;
};

void check_options(const RepairData& data, const RepairOptions& options) {
  if (data.tests.empty() && options.adversarial.empty() && options.loop.parts == 0)
    bad_usage("there is nothing to repair with: give --tests, --adversarial or --loop");
  if (options.mix < 0 || options.mix >= 1)
    bad_usage("the share of tests in a batch is {}, but must be below 1", options.mix);
}

std::vector<std::string> attack_names(const RepairOptions& options) {
  std::vector<std::string> names;
  for (const Spec& spec : options.attack_specs()) {
    bool twice = std::find(names.begin(), names.end(), spec.name) != names.end();
    names.push_back(twice ? spec.str() : spec.name);
  }
  return names;
}

}  // namespace

RepairLoop RepairLoop::parse(const std::string& text) {
  static const OptionSchema kSchema = {{"k", std::int64_t{5}, "parts of the training data", 1.0, 1000.0, {}},
                                       {"per_image", std::int64_t{1}, "mutants of an image", 1.0, 1000.0, {}},
                                       {"most", std::int64_t{0}, "kept in a round; 0: all", 0.0, 1e9, {}}};
  Options options("--loop", kSchema, Spec::parse("loop:" + text));
  RepairLoop loop;
  loop.parts = options.integer("k");
  loop.per_image = options.integer("per_image");
  loop.most = options.integer("most");
  return loop;
}

std::vector<std::string> parse_controls(const std::string& text) {
  std::vector<std::string> controls;
  for (const Spec& spec : Spec::parse_list(text)) {
    if (spec.str() == "none") continue;
    if (spec.str() != "clean" && spec.str() != "noise")
      bad_usage("there is no control '{}': known are clean, noise and none", printable(spec.str()));
    controls.push_back(spec.name);
  }
  return controls;
}

std::vector<Spec> RepairOptions::attack_specs() const {
  return attacks.empty() ? std::vector<Spec>{} : Spec::parse_list(attacks);
}

double RepairOptions::allowed_clean_loss() const {
  constexpr double kUsual = 0.01;
  if (clean_loss >= 0) return clean_loss;
  return adversarial.empty() && loop.parts == 0 ? kUsual : 1;
}

double Verdicts::accuracy() const {
  return right.sum().item<double>() / static_cast<double>(std::max<std::int64_t>(1, right.numel()));
}

std::int64_t MeasuredSet::inputs() const {
  return verdicts.at(0).right.numel();
}

const char* to_string(SetKind kind) {
  switch (kind) {
    case SetKind::clean:
      return "clean";
    case SetKind::held_out:
      return "held-out tests";
    case SetKind::trained:
      return "tests trained on";
    case SetKind::attacked:
      return "attacked";
  }
  return "";
}

double RepairResult::accuracy(SetKind kind, std::size_t which) const {
  double right = 0, all = 0;
  for (const MeasuredSet& set : sets) {
    if (set.kind != kind) continue;
    right += set.verdicts[which].right.sum().item<double>();
    all += static_cast<double>(set.inputs());
  }
  return all > 0 ? right / all : std::numeric_limits<double>::quiet_NaN();
}

namespace {

std::vector<std::int64_t> changed(const RepairResult& result, bool to) {
  const MeasuredSet& set = result.sets.at(0);
  const bool* before = set.verdicts.front().right.data_ptr<bool>();
  const bool* after = set.verdicts.back().right.data_ptr<bool>();
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < set.inputs(); ++i) {
    if (before[i] != to && after[i] == to) rows.push_back(i);
  }
  return rows;
}

}  // namespace

std::vector<std::int64_t> RepairResult::broken() const {
  return changed(*this, false);
}

std::vector<std::int64_t> RepairResult::mended() const {
  return changed(*this, true);
}

std::vector<ClassChange> RepairResult::by_class() const {
  std::vector<ClassChange> all(static_cast<std::size_t>(network->info().classes));
  const auto* labels = clean.labels.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < clean.size(); ++i) all[static_cast<std::size_t>(labels[i])].inputs += 1;
  for (std::int64_t i : mended()) all[static_cast<std::size_t>(labels[i])].mended += 1;
  for (std::int64_t i : broken()) all[static_cast<std::size_t>(labels[i])].broken += 1;
  return all;
}

std::string RepairResult::input_name(std::int64_t row) const {
  std::string file = clean.file(row);
  return file.empty() ? fmt::format("item {}", clean_items.empty() ? row : clean_items[static_cast<std::size_t>(row)])
                      : file;
}

RepairResult repair(Network& network, const RepairData& data, const RepairOptions& options,
                    const RepairListener& listener) {
  check_options(data, options);
  check_repairable(network);
  for (const Dataset* part : {&data.train, &data.clean}) {
    check_fits(network, part->images, part->name);
    if (!part->labelled()) bad_input("{}: has images without a label, so it cannot be repaired with", part->name);
    check_labels(network, *part);
  }
  return Repair(network, data, options, listener).run();
}

std::vector<std::filesystem::path> repair_checkpoints(const std::filesystem::path& stem, const RepairOptions& options) {
  std::vector<std::filesystem::path> paths;
  if (stem.empty()) return paths;
  std::int64_t rounds = options.loop.parts;
  if (rounds == 0) paths.push_back(stem);
  for (std::int64_t round = 1; round <= rounds; ++round) paths.push_back(round_checkpoint(stem, round));
  for (const std::string& control : options.controls) {
    if (rounds == 0) paths.push_back(control_checkpoint(stem, control, 0));
    for (std::int64_t round = 1; round <= rounds; ++round) paths.push_back(control_checkpoint(stem, control, round));
  }
  return paths;
}

std::vector<std::string> repair_figure_names(const RepairOptions& options) {
  std::vector<std::string> names;
  auto add = [&](const std::string& of) {
    for (const char* what : {"-before", "-after", "-gained", "-lost"}) names.push_back(of + what);
  };
  add("clean");
  add("tests");
  for (const std::string& attack : attack_names(options)) add(attack);
  names.insert(names.end(), {"broken", "mended"});
  return names;
}

Figures figures_of(const RepairResult& result, const RepairOptions& options) {
  Figures figures;
  auto add = [&](const std::string& of, double before, double after) {
    figures.emplace_back(of + "-before", before);
    figures.emplace_back(of + "-after", after);
    figures.emplace_back(of + "-gained", after - before);
    figures.emplace_back(of + "-lost", before - after);
  };
  add("clean", result.accuracy(SetKind::clean, 0), result.accuracy(SetKind::clean, result.after()));
  add("tests", result.accuracy(SetKind::held_out, 0), result.accuracy(SetKind::held_out, result.after()));
  std::vector<std::string> names = attack_names(options);
  std::size_t next = 0;
  for (const MeasuredSet& set : result.sets) {
    if (set.kind == SetKind::attacked)
      add(names.at(next++), set.verdicts.front().accuracy(), set.verdicts.back().accuracy());
  }
  figures.emplace_back("broken", static_cast<double>(result.broken().size()));
  figures.emplace_back("mended", static_cast<double>(result.mended().size()));
  return figures;
}

std::string describe(const RepairResult& result, const RepairOptions& options) {
  const TrainOptions& training = options.training;
  std::string how = fmt::format("{} tests of {} seeds", result.trained_tests, result.trained_seeds);
  if (options.loop.parts > 0)
    how += fmt::format(" in {} rounds ({} by {})", options.loop.parts, options.loop.keep, options.loop.criterion);
  if (!options.adversarial.empty())
    how = result.trained_tests > 0 ? how + " and " + options.adversarial : options.adversarial;
  if (result.trained_tests > 0) how += fmt::format(", mix {}", options.mix);
  if (result.blends.back() < 1) how += fmt::format(", blended {}", result.blends.back());
  return fmt::format("{}, {} epochs of {}{}, seed {}", how, result.epochs, training.optimizer,
                     training.frozen.empty() ? "" : ", frozen " + training.frozen, training.seed);
}

}  // namespace galvani
