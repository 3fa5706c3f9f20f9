#include "generate/population.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"

namespace galvani {
namespace {

// What the populations of a block of parents may take. A constant, for it decides who shares a micro-batch.
constexpr std::int64_t kCrowdBytes = std::int64_t{256} << 20;
constexpr double kGridSlack = 1e-6;
constexpr int kStep = 0, kFinal = 1;  // places in kinds()

// One parent's population.
struct Crowd {
  std::size_t parent;
  Terrain terrain;
  std::unique_ptr<Movement> movement;
  at::Tensor places;            // [members, values] float
  std::vector<double> fitness;  // of the members where they are now
  at::Tensor best;              // [values]: of all generations
  double best_fitness = -std::numeric_limits<double>::infinity();
  std::int64_t best_generation = 0;
  std::int64_t slot = 0;
};

class PopulationProposal : public Proposal {
 public:
  PopulationProposal(const PopulationSearch& search, std::vector<PickedParent> picked, const PickOrder& wanted)
      : Proposal(search, std::move(picked), wanted), search_(search) {
    // As much of the search as there are candidates to be made; the last one is the best once more.
    std::int64_t most = std::max<std::int64_t>(1, order().energy - 1);
    members_ = std::min(search.population(), most);
    generations_ = std::min(search.generations(), std::max<std::int64_t>(1, most / members_));
    with_final_ = order().energy > members_ * generations_;
  }

 private:
  // A candidate of the round, and the member that it is.
  struct Shown {
    Candidate candidate;
    std::size_t crowd;
    std::int64_t member;
  };

  Candidates run(std::int64_t most) override {
    while (next_ == round_.size()) {
      if (!begin_round()) return {};
    }
    given_ = next_;
    auto count = std::min(static_cast<std::size_t>(most), round_.size() - next_);
    Candidates result;
    for (std::size_t i = 0; i < count; ++i) result.each.push_back(round_[next_ + i].candidate);
    result.inputs = inputs_.narrow(0, static_cast<std::int64_t>(next_), static_cast<std::int64_t>(count)).contiguous();
    next_ += count;
    return result;
  }

  void run_learn(const Outcome& outcome) override {
    if (work_ != nullptr || final_) return;
    for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
      const Shown& shown = round_[given_ + static_cast<std::size_t>(outcome.rows[i])];
      Crowd& crowd = crowds_[shown.crowd];
      crowd.fitness[static_cast<std::size_t>(shown.member)] =
          search_.fitness().of_scores(outcome.logits[static_cast<std::int64_t>(i)], parents()[crowd.parent].label);
    }
  }

  std::string run_provenance(std::size_t row) const override {
    const Shown& shown = round_[given_ + row];
    return final_ ? fmt::format("{}:generation={}", search_.kinds()[kFinal], crowds_[shown.crowd].best_generation)
                  : fmt::format("{}:generation={},member={}", search_.kinds()[kStep], generation_, shown.member);
  }

  // How far it is from the seed, as a share of the full scale, and how fit, where that is known by now.
  std::vector<std::pair<std::string, double>> run_figures(std::size_t row) const override {
    const Shown& shown = round_[given_ + row];
    const Crowd& crowd = crowds_[shown.crowd];
    at::Tensor change =
        inputs_[static_cast<std::int64_t>(given_ + row)].to(at::kDouble) - parents()[crowd.parent].seed.to(at::kDouble);
    std::vector<std::pair<std::string, double>> figures = {
        {"generation", static_cast<double>(final_ ? crowd.best_generation : generation_)},
        {"l2", change.norm().item<double>() / search_.full()},
        {"linf", change.abs().max().item<double>() / search_.full()}};
    double fitness = final_             ? crowd.best_fitness
                     : work_ != nullptr ? crowd.fitness[static_cast<std::size_t>(shown.member)]
                                        : -std::numeric_limits<double>::infinity();
    if (std::isfinite(fitness)) figures.emplace_back("fitness", fitness);
    return figures;
  }

  // The next generation of a block of parents, the best of their last one, or the first of the next block.
  bool begin_round() {
    check_interrupt();
    next_ = given_ = 0;
    round_.clear();
    if (crowds_.empty() || final_) {
      if (!begin_block()) return false;
    } else {
      settle();
      final_ = generation_ == generations_ ||
               std::none_of(crowds_.begin(), crowds_.end(), [&](const Crowd& crowd) { return wants_more(crowd); });
      if (!final_) advance();
    }
    collect();
    return true;
  }

  bool begin_block() {
    final_ = false;
    generation_ = 1;
    crowds_.clear();
    std::vector<PickedParent> block;
    std::int64_t size = search_.parents_at_once(members_);
    for (; parent_ < parents().size() && static_cast<std::int64_t>(block.size()) < size; ++parent_) {
      block.push_back(parents()[parent_]);
      Crowd crowd;
      crowd.parent = parent_;
      crowds_.push_back(std::move(crowd));
    }
    if (block.empty()) return false;
    workers().run(static_cast<std::int64_t>(block.size()), [&](std::int64_t i, int) {
      Crowd& crowd = crowds_[static_cast<std::size_t>(i)];
      const PickedParent& parent = block[static_cast<std::size_t>(i)];
      crowd.terrain = search_.terrain(parent);
      crowd.movement = search_.movement(members_, crowd.terrain, parent.stream(0).derive("movement"));
      crowd.places = search_.first_places(parent, crowd.terrain, members_);
    });
    work_ = search_.fitness().begin(block);
    counted_ = 0;
    return true;
  }

  bool wants_more(const Crowd& crowd) const {
    return !closed(crowd.parent) && !(crowd.best_fitness >= search_.fitness().enough());
  }

  // Remembers the best. Of equal ones, the first.
  void settle() {
    for (Crowd& crowd : crowds_) {
      for (std::size_t i = 0; i < crowd.fitness.size(); ++i) {
        bool first = !crowd.best.defined();
        if (!first && !(crowd.fitness[i] > crowd.best_fitness)) continue;
        crowd.best = crowd.places[static_cast<std::int64_t>(i)].clone();
        crowd.best_fitness = crowd.fitness[i];
        crowd.best_generation = generation_;
      }
    }
  }

  void advance() {
    workers().run(static_cast<std::int64_t>(crowds_.size()), [&](std::int64_t i, int) {
      Crowd& crowd = crowds_[static_cast<std::size_t>(i)];
      if (!wants_more(crowd)) return;
      Rng rng = parents()[crowd.parent].stream(0).derive({1, static_cast<std::uint64_t>(generation_)});
      crowd.movement->advance(crowd.terrain, crowd.fitness, generation_, rng, crowd.places);
    });
    ++generation_;
  }

  // Candidates of the round, as they would be saved, and how fit they are, if that takes passes.
  void collect() {
    std::vector<at::Tensor> rows;
    for (std::size_t i = 0; i < crowds_.size(); ++i) {
      Crowd& crowd = crowds_[i];
      bool wanted = final_ ? with_final_ && !closed(crowd.parent) : wants_more(crowd);
      if (!wanted) continue;
      std::int64_t count = final_ ? 1 : members_;
      rows.push_back(final_ ? crowd.best.unsqueeze(0) : crowd.places);
      for (std::int64_t member = 0; member < count; ++member) {
        Shown shown{{}, i, member};
        shown.candidate.parent = crowd.parent;
        shown.candidate.slot = crowd.slot++;
        shown.candidate.kind = final_ ? kFinal : kStep;
        shown.candidate.repeatable = false;
        round_.push_back(shown);
      }
      if (!final_) crowd.fitness.assign(static_cast<std::size_t>(members_), -std::numeric_limits<double>::infinity());
    }
    if (round_.empty()) return;
    const at::Tensor& example = parents().front().input;
    std::vector<std::int64_t> shape = example.sizes().vec();
    shape.insert(shape.begin(), static_cast<std::int64_t>(round_.size()));
    inputs_ = at::empty(shape, example.options());
    std::int64_t first = 0;
    for (const at::Tensor& part : rows) {
      at::Tensor to = inputs_.narrow(0, first, part.size(0));
      to.copy_(part.round().view(to.sizes()));
      first += part.size(0);
    }
    workers().run(static_cast<std::int64_t>(round_.size()), [&](std::int64_t i, int) {
      Candidate& candidate = round_[static_cast<std::size_t>(i)].candidate;
      candidate.valid = !at::equal(inputs_[i], parents()[candidate.parent].input);
    });
    if (work_ != nullptr && !final_) rate();
    if (work_ != nullptr) search_.count(work_->passes() - counted_);
    if (work_ != nullptr) counted_ = work_->passes();
  }

  void rate() {
    std::vector<std::size_t> owners;
    for (const Shown& shown : round_) owners.push_back(shown.crowd);
    std::vector<double> fitness = work_->of(inputs_, owners);
    for (std::size_t i = 0; i < round_.size(); ++i)
      crowds_[round_[i].crowd].fitness[static_cast<std::size_t>(round_[i].member)] = fitness[i];
  }

  const PopulationSearch& search_;
  std::int64_t members_;
  std::int64_t generations_;
  bool with_final_;
  std::size_t parent_ = 0;  // the next one that is searched
  std::vector<Crowd> crowds_;
  std::unique_ptr<FitnessWork> work_;
  std::int64_t counted_ = 0;  // of its passes
  std::int64_t generation_ = 0;
  bool final_ = false;
  std::vector<Shown> round_;
  at::Tensor inputs_;      // of the round
  std::size_t given_ = 0;  // where the last call begins
  std::size_t next_ = 0;
};

}  // namespace

PopulationSearch::PopulationSearch(const Options& options, const GeneratorContext& context)
    : fitness_(make_fitness(options, context.network)),
      population_(options.integer(kPopulation)),
      generations_(options.integer(kGenerations)),
      start_(options.text("start")) {
  at::ScalarType type = context.seeds.scalar_type();
  if (type != at::kByte && type != at::kShort) bad_usage("a search is made for 8-bit images and 16-bit sounds");
  bool bytes = type == at::kByte;
  low_ = bytes ? 0 : std::numeric_limits<std::int16_t>::min();
  high_ = bytes ? 255 : std::numeric_limits<std::int16_t>::max();
  full_ = bytes ? 255 : 32768;
  values_ = context.seeds[0].numel();
  // Whole steps of the grid, so that rounding stays inside.
  radius_ = std::floor(options.real("eps") * full_ + kGridSlack);
  if (radius_ < 1)
    bad_usage("eps {} is less than one step of the file's grid, {:.6g}, so nothing would change", options.real("eps"),
              1 / full_);
}

bool PopulationSearch::valid(const at::Tensor& reference, const at::Tensor& input) const {
  return (input.to(at::kDouble) - reference.to(at::kDouble)).abs().max().item<double>() <= radius_;
}

Terrain PopulationSearch::terrain(const PickedParent& parent) const {
  Terrain result;
  at::Tensor seed = parent.seed.to(at::kFloat).contiguous();
  result.seed.assign(seed.data_ptr<float>(), seed.data_ptr<float>() + seed.numel());
  result.radius = static_cast<float>(radius_);
  for (float value : result.seed) {
    result.low.push_back(std::max(static_cast<float>(low_), value - result.radius));
    result.high.push_back(std::min(static_cast<float>(high_), value + result.radius));
  }
  return result;
}

at::Tensor PopulationSearch::first_places(const PickedParent& parent, const Terrain& terrain,
                                          std::int64_t members) const {
  std::int64_t n = terrain.values();
  at::Tensor places = at::empty({members, n});
  bool corners = start_ == "corners", at_seed = start_ == "seed";
  for (std::int64_t member = 0; member < members; ++member) {
    float* place = places.data_ptr<float>() + member * n;
    Rng rng = parent.stream(0).derive({0, static_cast<std::uint64_t>(member)});
    for (std::size_t i = 0; i < terrain.low.size(); ++i) {
      auto share = at_seed ? 0.F : static_cast<float>(2 * rng.uniform() - 1);
      if (corners) share = share < 0 ? -1.F : 1.F;
      place[i] = std::clamp(terrain.seed[i] + share * terrain.radius, terrain.low[i], terrain.high[i]);
    }
  }
  // A parent that has been changed already is where the search goes on from.
  if (!at::equal(parent.input, parent.seed)) {
    at::Tensor own = parent.input.to(at::kFloat).flatten().contiguous();
    for (std::size_t i = 0; i < terrain.low.size(); ++i)
      places.data_ptr<float>()[i] = std::clamp(own.data_ptr<float>()[i], terrain.low[i], terrain.high[i]);
  }
  return places;
}

std::int64_t PopulationSearch::parents_at_once(std::int64_t members) const {
  // Where members are, where they were best, how fast they are, and what is shown.
  std::int64_t bytes = members * values_ * 4 * static_cast<std::int64_t>(sizeof(float));
  return std::max<std::int64_t>(1, kCrowdBytes / bytes);
}

std::unique_ptr<Proposal> PopulationSearch::run_begin(std::vector<PickedParent> parents, const PickOrder& order) const {
  return std::make_unique<PopulationProposal>(*this, std::move(parents), order);
}

at::Tensor PopulationSearch::run_make(const std::string& provenance, const at::Tensor&, const at::Tensor&) const {
  bad_usage("'{}' is a step of a search, which its name alone cannot make again", printable(provenance));
}

OptionSchema population_options() {
  OptionSchema options = {
      {kPopulation, std::int64_t{100}, "inputs that are changed side by side, of every parent", 1.0, 1e5, {}},
      {kGenerations, std::int64_t{20}, "how often they are", 1.0, 1e5, {}},
      {"eps", 0.1, "how far any value may go from the seed, as a share of the full scale", 0.0, 1.0, {}, true},
      {"start",
       std::string("inside"),
       "where they begin: anywhere in the ball, at its corners, or all at the seed",
       {},
       {},
       {"inside", "corners", "seed"}}};
  OptionSchema fitness = fitness_options();
  options.insert(options.end(), fitness.begin(), fitness.end());
  return options;
}

}  // namespace galvani
