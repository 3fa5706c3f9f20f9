// Algorithm 1 of the Revisiting study. As in a campaign, and unlike in the study's program, only mutants of inputs that
// the network gets right are looked at, and only valid ones.
#include "repair/loop.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/coverage/criterion.h"
#include "galvani/coverage/profile.h"
#include "galvani/coverage/profile_source.h"
#include "galvani/generate/generator.h"
#include "galvani/model/evaluate.h"
#include "repair/retrain.h"

namespace galvani {
namespace {

constexpr std::int64_t kParents = 512;  // whose mutants are made and judged together
constexpr std::int64_t kAllInputs = 0;  // of the profile: a range that leaves training data out calls its ends covered

double root_mean_square(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).square().mean().sqrt().item<double>() /
         static_cast<double>(full_scale(a.dim() + 1));
}

struct Mutants {
  FoundTests wrong;
  std::int64_t candidates = 0;
};

// The misclassified of all mutants of the rows.
Mutants misclassified(Network& network, const Dataset& data, const std::vector<std::int64_t>& rows, const Rng& rng,
                      const RepairLoop& loop, const std::string& title) {
  GeneratorContext context;
  context.seeds = data.images.index_select(0, at::tensor(rows, at::kLong));
  context.rate = data.rate;
  context.network = &network;
  context.class_names = data.class_names;
  std::unique_ptr<Generator> generator = make_generator(Spec::parse(loop.generator), context);
  Mutants result;
  std::vector<at::Tensor> images;
  std::vector<std::int64_t> labels;
  Progress progress(title, static_cast<std::int64_t>(rows.size()), data.type().noun());
  for (std::size_t first = 0; first < rows.size(); first += kParents) {
    check_interrupt();
    std::size_t last = std::min(rows.size(), first + kParents);
    auto count = static_cast<std::int64_t>(last - first);
    at::Tensor parts = context.seeds.narrow(0, static_cast<std::int64_t>(first), count);
    Predictions said = predict(network, parts);
    std::vector<PickedParent> parents;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t row = rows[first + static_cast<std::size_t>(i)];
      std::int64_t label = data.labels.data_ptr<std::int64_t>()[row];
      if (said.labels.data_ptr<std::int64_t>()[i] != label) continue;
      parents.push_back({parts[i], parts[i], "", label, row, rng});
    }
    progress.advance(count);
    if (parents.empty()) continue;
    std::unique_ptr<Proposal> proposal = generator->begin(parents, {loop.per_image, false});
    while (true) {
      Candidates made = proposal->next(kParents * loop.per_image);
      if (made.each.empty()) break;
      Outcome outcome;
      for (std::size_t i = 0; i < made.each.size(); ++i) {
        if (made.each[i].valid) outcome.rows.push_back(static_cast<std::int64_t>(i));
      }
      if (!outcome.rows.empty()) {
        at::Tensor shown = made.inputs.index_select(0, at::tensor(outcome.rows, at::kLong));
        Predictions verdicts = predict(network, shown);
        outcome.logits = verdicts.logits;
        outcome.predicted = verdicts.labels;
        for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
          const PickedParent& parent = parents[made.each[static_cast<std::size_t>(outcome.rows[i])].parent];
          if (verdicts.labels.data_ptr<std::int64_t>()[i] == parent.label) continue;
          at::Tensor image = shown[static_cast<std::int64_t>(i)].clone();
          result.wrong.seeds.push_back(pixels_of(parent.seed));
          result.wrong.changes.push_back(root_mean_square(image, parent.seed));
          labels.push_back(parent.label);
          images.push_back(std::move(image));
        }
        result.candidates += static_cast<std::int64_t>(outcome.rows.size());
      }
      outcome.kept.assign(outcome.rows.size(), 0);
      proposal->learn(outcome);
    }
  }
  progress.finish();
  result.wrong.images.name = "mutants of " + data.name;
  result.wrong.images.class_names = data.class_names;
  if (images.empty()) return result;
  result.wrong.images.images = at::stack(images);
  result.wrong.images.labels = at::tensor(labels, at::kLong);
  return result;
}

// Coverage of one network by data, against which single inputs are held.
class Ground {
 public:
  Ground(Network& network, const Dataset& train, const FoundTests& before, const RepairOptions& options)
      : tracer_(network, network.select_taps(options.loop.taps), options.loop.unit) {
    std::vector<Spec> specs = {Spec::parse(options.loop.criterion)};
    std::shared_ptr<const Profile> profile;
    if (needs_profile(specs, tracer_.layout()))
      profile = learn_profile(tracer_, specs, train, kAllInputs, options.training.seed);
    criterion_ = make_criterion(specs[0], {tracer_.layout(), profile});
    if (criterion_->covered_features() == nullptr)
      bad_usage(
          "--criterion {}: is not a set of things to cover, so it cannot be said of a single input whether it "
          "adds one; nc, kmnc, nbc, snac, tknc and others can",
          criterion_->id());
    tracer_.need(criterion_->needs());
    add(train, "coverage of the training data");
    if (before.size() > 0) add(before.images, "coverage of the tests");
  }

  double score() const { return criterion_->score(); }

  void add(const Dataset& data, const std::string& title) {
    tracer_.stream(data, title, [&](const Traces& traces, std::int64_t) { criterion_->add(traces); });
  }

  // Of each input whether it covers something that is not covered yet, whatever the others do.
  std::vector<char> improving(const Dataset& data) const {
    std::vector<char> result;
    tracer_.stream(data, "coverage of the mutants", [&](const Traces& traces, std::int64_t) {
      Features features;
      criterion_->features(traces, features);
      for (std::size_t i = 0; i < features.ends.size(); ++i) {
        auto begin = features.ids.begin() + static_cast<std::ptrdiff_t>(features.begin_of(i));
        auto end = features.ids.begin() + static_cast<std::ptrdiff_t>(features.ends[i]);
        result.push_back(
            std::any_of(begin, end, [&](std::uint64_t id) { return !criterion_->covered_features()->contains(id); })
                ? 1
                : 0);
      }
    });
    return result;
  }

 private:
  Tracer tracer_;
  std::unique_ptr<Criterion> criterion_;
};

}  // namespace

LoopFind find_round(Network& network, const Dataset& train, const FoundTests& before, std::int64_t round,
                    const RepairOptions& options) {
  const RepairLoop& loop = options.loop;
  Rng rng = Rng(options.training.seed).derive("repair loop");
  std::vector<std::int64_t> order(static_cast<std::size_t>(train.size()));
  std::iota(order.begin(), order.end(), 0);
  rng.derive("parts").shuffle(order);
  auto size = static_cast<std::int64_t>(order.size());
  std::vector<std::int64_t> part(order.begin() + (round - 1) * size / loop.parts,
                                 order.begin() + round * size / loop.parts);
  std::sort(part.begin(), part.end());

  Rng own = rng.derive("round").derive(static_cast<std::uint64_t>(round));
  Mutants mutants = misclassified(network, train, part, own.derive("mutants"), loop,
                                  fmt::format("round {}/{}: mutants", round, loop.parts));
  LoopFind find;
  find.round.candidates = mutants.candidates;
  find.round.wrong = mutants.wrong.size();
  Ground ground(network, train, before, options);
  find.round.coverage_before = ground.score();
  if (mutants.wrong.size() > 0) {
    std::vector<char> improving = ground.improving(mutants.wrong.images);
    find.round.improving = std::count(improving.begin(), improving.end(), 1);
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < improving.size(); ++i) {
      if (loop.keep == "all" || (improving[i] != 0) == (loop.keep == "coverage-improving"))
        rows.push_back(static_cast<std::int64_t>(i));
    }
    if (loop.most > 0 && static_cast<std::int64_t>(rows.size()) > loop.most) {
      own.derive("kept").shuffle(rows);
      rows.resize(static_cast<std::size_t>(loop.most));
      std::sort(rows.begin(), rows.end());
    }
    if (!rows.empty()) {
      find.kept = mutants.wrong.subset(rows);
      ground.add(find.kept.images, "coverage of what was kept");
    }
    find.round.kept = static_cast<std::int64_t>(rows.size());
  }
  find.round.coverage_after = ground.score();
  return find;
}

FoundTests mutants_of(Network& network, const Dataset& clean, const RepairOptions& options) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(clean.size()));
  std::iota(rows.begin(), rows.end(), 0);
  Rng rng = Rng(options.training.seed).derive("repair loop").derive("held-out mutants");
  return misclassified(network, clean, rows, rng, options.loop, "held-out mutants").wrong;
}

}  // namespace galvani
