#include "galvani/select/select.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "galvani/mutate/one_each.h"
#include "galvani/select/diverse.h"
#include "select/pass.h"

namespace galvani {
namespace {

// The heap is kept as it is (base/runtime), and the pieces of a large pool would leave ever more holes in it.
void release_holes() {
  malloc_trim(0);
}

class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  std::chrono::steady_clock::time_point start_;
};

constexpr std::size_t kHashDigits = 32;
constexpr std::size_t kNamedCopies = 3;

// A run of several selectors over one pool.
class SelectionRun {
 public:
  SelectionRun(Network& network, const DataView& pool, const SelectRequest& request)
      : network_(network), pool_(pool), request_(request), diverse_by_(feature_of(network, "penultimate")) {
    SelectContext context{
        network, pool.type(), pool.size(), request.seed, request.train != nullptr, request.originals != nullptr};
    for (const Spec& spec : request.by) {
      selectors_.push_back(make_selector(spec, context));
      needs_.push_back(selectors_.back()->needs());
    }
    pass_ = std::make_unique<SharedPass>(network, needs_);
    for (const SelectorNeeds& needs : needs_) {
      originals_ |= needs.originals;
      for (bool sample : {false, true}) {
        MutantNeed need = mutants_of(needs, sample);
        if (need.count == 0) continue;
        makers_.try_emplace(need.set, catalogue_for(need.set, pool.type().kind), pool.type());
        std::int64_t& most = (sample ? sample_mutants_ : mutants_)[need.set];
        most = std::max(most, need.count);
      }
    }
    if (originals_ && request.originals->size() != pool.size())
      bad_input("{}: has {} inputs, but the pool {} has {}; originals are given in the pool's order, one for each",
                request.originals->name, request.originals->size(), pool.name, pool.size());
    result_.by.resize(selectors_.size());
    result_.predicted = at::empty({pool.size()}, at::kLong);
    result_.confidence = at::empty({pool.size()});
  }

  Selection run() {
    learn_training();
    learn_sample();
    score_pool();
    if (request_.copies == PoolCopies::refused && !result_.copies.empty())
      bad_input("{}: {}; --skip-broken leaves them out", pool_.name, copies_text(pool_, result_.copies));
    for (std::size_t i = 0; i < selectors_.size(); ++i) finish(i);
    return std::move(result_);
  }

 private:
  void learn_training() {
    if (std::none_of(needs_.begin(), needs_.end(), [](const SelectorNeeds& needs) { return needs.training; })) return;
    const DataView& train = *request_.train;
    check_fits(network_, train.type().shape, train.name);
    check_labels(network_, train);
    Progress progress("training data", train.size(), train.type().noun());
    train.for_each_piece(pass_->piece(train.type().bytes(), 1), [&](const at::Tensor& inputs, std::int64_t first) {
      Seen seen;
      {
        Stopwatch watch(result_.times.training);
        seen = pass_->run(inputs, true);
      }
      for (std::size_t i = 0; i < selectors_.size(); ++i) {
        if (!needs_[i].training) continue;
        Stopwatch watch(result_.by[i].seconds);
        selectors_[i]->train({inputs, train.labels.narrow(0, first, inputs.size(0)), pass_->share(seen, i)});
      }
      progress.advance(inputs.size(0));
    });
    for (std::size_t i = 0; i < selectors_.size(); ++i) {
      if (!needs_[i].training) continue;
      Stopwatch watch(result_.by[i].seconds);
      selectors_[i]->finish_training();
    }
  }

  // The rows of one share are among those of a larger one.
  void learn_sample() {
    double most = 0;
    for (const SelectorNeeds& needs : needs_) most = std::max(most, needs.sample);
    if (most == 0 || pool_.size() == 0) return;
    double before = result_.times.passes + result_.times.mutating;
    auto count_of = [&](double share) {
      return std::clamp<std::int64_t>(std::llround(static_cast<double>(pool_.size()) * share), 1, pool_.size());
    };
    std::vector<std::int64_t> drawn =
        Rng(request_.seed).derive("selection sample").sample(pool_.size(), count_of(most));
    std::vector<std::int64_t> place(drawn.size());
    std::iota(place.begin(), place.end(), 0);
    std::sort(place.begin(), place.end(), [&](std::int64_t a, std::int64_t b) {
      return drawn[static_cast<std::size_t>(a)] < drawn[static_cast<std::size_t>(b)];
    });
    Progress progress("sample", count_of(most), pool_.type().noun());
    auto piece = static_cast<std::size_t>(pass_->piece(pool_.type().bytes(), runs()));
    for (std::size_t begin = 0; begin < place.size(); begin += piece) {
      std::size_t end = std::min(place.size(), begin + piece);
      PoolPart part;
      for (std::size_t at = begin; at < end; ++at) part.rows.push_back(drawn[static_cast<std::size_t>(place[at])]);
      auto seen = look_at(part, "sensitive neurons", sample_mutants_, false);
      for (std::size_t i = 0; i < selectors_.size(); ++i) {
        if (needs_[i].sample == 0) continue;
        std::vector<std::int64_t> mine;
        for (std::size_t at = begin; at < end; ++at) {
          if (place[at] < count_of(needs_[i].sample)) mine.push_back(static_cast<std::int64_t>(at - begin));
        }
        if (mine.empty()) continue;
        Stopwatch watch(result_.by[i].seconds);
        PoolPart own = part_for(part, seen, i, true);
        if (mine.size() < part.rows.size()) own = rows_of(own, mine);
        selectors_[i]->sample(own);
      }
      progress.advance(static_cast<std::int64_t>(end - begin));
      check_interrupt();
      if (end < place.size()) release_holes();
    }
    for (std::size_t i = 0; i < selectors_.size(); ++i) {
      if (needs_[i].sample > 0) selectors_[i]->finish_sample();
    }
    result_.times.sample = result_.times.passes + result_.times.mutating - before;
  }

  void score_pool() {
    Progress progress("pool", pool_.size(), pool_.type().noun());
    bool traces = std::any_of(needs_.begin(), needs_.end(), [](const SelectorNeeds& needs) { return needs.traces; });
    std::int64_t piece = pass_->piece(pool_.type().bytes(), runs());
    for (std::int64_t first = 0; first < pool_.size(); first += piece) {
      std::int64_t n = std::min(piece, pool_.size() - first);
      PoolPart part;
      part.rows.resize(static_cast<std::size_t>(n));
      std::iota(part.rows.begin(), part.rows.end(), first);
      auto seen = look_at(part, "mutants to score", mutants_, traces);
      if (request_.copies != PoolCopies::ignored) find_copies(part);
      result_.predicted.narrow(0, first, n).copy_(seen.own.predicted);
      result_.confidence.narrow(0, first, n).copy_(confidences(seen.own.probabilities, seen.own.predicted));
      for (std::size_t i = 0; i < selectors_.size(); ++i) {
        Stopwatch watch(result_.by[i].seconds);
        selectors_[i]->add(part_for(part, seen, i, false));
      }
      progress.advance(n);
      check_interrupt();
      if (first + piece < pool_.size()) release_holes();
    }
  }

  void finish(std::size_t i) {
    Selector& selector = *selectors_[i];
    Selected& selected = result_.by[i];
    selected.id = selector.id();
    selected.spec = selector.spec();
    {
      Stopwatch watch(selected.seconds);
      selected.ranking = selector.rank(request_.seed);
    }
    selected.notes = selector.notes();
    selected.random = selector.random();
    selected.unscored = std::count_if(selected.ranking.scores.begin(), selected.ranking.scores.end(),
                                      [](double score) { return std::isnan(score); });
    std::vector<std::int64_t> order =
        request_.copies == PoolCopies::left_out ? without_copies(selected.ranking.order) : selected.ranking.order;
    auto all = static_cast<std::int64_t>(order.size());
    // The best of a small budget are among those of a larger one: their features are fetched once.
    std::int64_t most = 0;
    for (std::int64_t budget : request_.budgets) most = std::max(most, std::min(all, reach(selector, budget)));
    Shortlist candidates;
    if (most > 0)
      candidates = best_again({order.begin(), order.begin() + most}, selected.ranking.scores,
                              request_.diverse ? diverse_by_ : selector.refined_by());
    for (std::int64_t budget : request_.budgets) {
      Stopwatch watch(selected.seconds);
      std::int64_t wanted = std::min(all, reach(selector, budget));
      budget = std::min(all, budget);
      if (wanted == 0) {
        selected.picks.emplace_back(order.begin(), order.begin() + budget);
        continue;
      }
      Shortlist own{{candidates.rows.begin(), candidates.rows.begin() + wanted},
                    {candidates.scores.begin(), candidates.scores.begin() + wanted},
                    candidates.features.narrow(0, 0, wanted)};
      if (!request_.diverse) {
        selected.picks.push_back(selector.refine(own, budget));
        continue;
      }
      selected.picks.emplace_back();
      for (std::int64_t at : choose_diverse(own.features, diversity_weights(own.scores), budget))
        selected.picks.back().push_back(own.rows[static_cast<std::size_t>(at)]);
    }
  }

  std::int64_t reach(const Selector& selector, std::int64_t budget) const {
    return request_.diverse ? diverse_reach(budget, pool_.size()) : selector.reach(budget);
  }

  void find_copies(const PoolPart& part) {
    at::Tensor inputs = part.inputs.contiguous();
    std::size_t bytes = pool_.type().bytes();
    const char* data = static_cast<const char*>(inputs.data_ptr());
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      std::string hash = sha256({data + i * bytes, bytes}).substr(0, kHashDigits);
      auto [first, fresh] = seen_.emplace(std::move(hash), part.rows[i]);
      if (!fresh) result_.copies.emplace_back(part.rows[i], first->second);
    }
  }

  // Of inputs that are alike the first in the order stays.
  std::vector<std::int64_t> without_copies(const std::vector<std::int64_t>& order) const {
    std::unordered_map<std::int64_t, std::int64_t> original(result_.copies.begin(), result_.copies.end());
    std::unordered_set<std::int64_t> taken;
    std::vector<std::int64_t> kept;
    for (std::int64_t row : order) {
      auto found = original.find(row);
      if (taken.insert(found == original.end() ? row : found->second).second) kept.push_back(row);
    }
    return kept;
  }

  Shortlist best_again(std::vector<std::int64_t> rows_wanted, const std::vector<double>& scores,
                       const FeatureNeed& need) {
    Stopwatch watch(result_.times.again);
    SharedPass pass(network_, need);
    Shortlist best;
    best.rows = std::move(rows_wanted);
    auto count = static_cast<std::int64_t>(best.rows.size());
    for (std::int64_t row : best.rows) best.scores.push_back(scores[static_cast<std::size_t>(row)]);
    // Read in the order of the pool, which files are stored in.
    std::vector<std::int64_t> place(best.rows.size());
    std::iota(place.begin(), place.end(), 0);
    std::sort(place.begin(), place.end(), [&](std::int64_t a, std::int64_t b) {
      return best.rows[static_cast<std::size_t>(a)] < best.rows[static_cast<std::size_t>(b)];
    });
    Progress progress("the best again", count, pool_.type().noun());
    std::int64_t piece = pass.piece(pool_.type().bytes(), 1);
    for (std::int64_t first = 0; first < count; first += piece) {
      std::int64_t n = std::min(piece, count - first);
      std::vector<std::int64_t> rows, places(place.begin() + first, place.begin() + first + n);
      for (std::int64_t at : places) rows.push_back(best.rows[static_cast<std::size_t>(at)]);
      at::Tensor found = pass.run(pool_.fetch(rows), false).features[0];
      if (!best.features.defined()) best.features = at::empty({count, found.size(1)});
      best.features.index_copy_(0, at::tensor(places, at::kLong), found);
      progress.advance(n);
      check_interrupt();
    }
    return best;
  }

  // Neighbours need not be copied together.
  static at::Tensor fetch(const DataView& data, const std::vector<std::int64_t>& rows) {
    auto n = static_cast<std::int64_t>(rows.size());
    return rows.back() - rows.front() == n - 1 ? data.fetch(rows.front(), n) : data.fetch(rows);
  }

  // Fresh mutants that a selector wants of every input: of the pool, or of its sample.
  struct MutantNeed {
    std::string set;
    std::int64_t count = 0;
  };
  static MutantNeed mutants_of(const SelectorNeeds& needs, bool sample) {
    if (!sample) return {needs.mutators, needs.mutants};
    if (needs.sample == 0) return {};
    if (!needs.sample_mutators.empty()) return {needs.sample_mutators, 1};
    return {needs.mutators, needs.mutants};
  }
  using MutantCounts = std::map<std::string, std::int64_t>;  // by set: how many of each input

  struct AllSeen {
    Seen own, original;
    std::map<std::string, std::vector<Seen>> mutants;
  };

  AllSeen look_at(PoolPart& part, const char* purpose, const MutantCounts& counts, bool traces) {
    part.inputs = fetch(pool_, part.rows);
    AllSeen seen;
    {
      Stopwatch watch(result_.times.passes);
      seen.own = pass_->run(part.inputs, traces);
    }
    if (originals_) {
      at::Tensor originals = fetch(*request_.originals, part.rows);
      Stopwatch watch(result_.times.passes);
      seen.original = pass_->run(originals, false);
    }
    for (const auto& [set, count] : counts) {
      const OneEach& maker = makers_.at(set);
      for (std::int64_t repeat = 0; repeat < count; ++repeat) {
        Rng stream = Rng(request_.seed).derive(purpose).derive(set).derive(static_cast<std::uint64_t>(repeat));
        at::Tensor images;
        {
          Stopwatch watch(result_.times.mutating);
          images = maker.make(part.inputs, part.rows, stream).images;
        }
        Stopwatch watch(result_.times.passes);
        seen.mutants[set].push_back(pass_->run(images, false));
      }
    }
    return seen;
  }

  // What selector `i` reads of it.
  PoolPart part_for(const PoolPart& part, const AllSeen& seen, std::size_t i, bool sample) const {
    PoolPart own = part;
    own.seen = pass_->share(seen.own, i);
    if (needs_[i].originals) own.original = pass_->share(seen.original, i);
    MutantNeed need = mutants_of(needs_[i], sample);
    for (std::int64_t m = 0; m < need.count; ++m)
      own.mutants.push_back(pass_->share(seen.mutants.at(need.set)[static_cast<std::size_t>(m)], i));
    return own;
  }

  static Seen rows_of(const Seen& seen, const at::Tensor& rows) {
    Seen some;
    if (!seen.predicted.defined()) return some;
    some.logits = seen.logits.index_select(0, rows);
    some.probabilities = seen.probabilities.index_select(0, rows);
    some.predicted = seen.predicted.index_select(0, rows);
    for (const at::Tensor& features : seen.features) some.features.push_back(features.index_select(0, rows));
    return some;
  }

  static PoolPart rows_of(const PoolPart& part, const std::vector<std::int64_t>& rows) {
    at::Tensor index = at::tensor(rows, at::kLong);
    PoolPart some;
    for (std::int64_t row : rows) some.rows.push_back(part.rows[static_cast<std::size_t>(row)]);
    some.inputs = part.inputs.index_select(0, index);
    some.seen = rows_of(part.seen, index);
    some.original = rows_of(part.original, index);
    for (const Seen& mutant : part.mutants) some.mutants.push_back(rows_of(mutant, index));
    return some;
  }

  // How often a piece is run at once.
  std::int64_t runs() const {
    std::int64_t count = 1 + (originals_ ? 1 : 0);
    for (const auto& [set, repeats] : mutants_) count += repeats;
    return count;
  }

  Network& network_;
  const DataView& pool_;
  const SelectRequest& request_;
  FeatureNeed diverse_by_;
  std::vector<std::unique_ptr<Selector>> selectors_;
  std::vector<SelectorNeeds> needs_;
  std::unique_ptr<SharedPass> pass_;
  std::map<std::string, OneEach> makers_;
  MutantCounts mutants_, sample_mutants_;
  bool originals_ = false;
  std::unordered_map<std::string, std::int64_t> seen_;  // by hash: the first input that has it
  Selection result_;
};

}  // namespace

Selection select_from(Network& network, const DataView& pool, const SelectRequest& request) {
  check_fits(network, pool.type().shape, pool.name);
  if (pool.size() == 0) bad_input("{}: there are no inputs to select from", pool.name);
  for (std::int64_t budget : request.budgets) {
    if (budget < 1 || budget > pool.size())
      bad_usage("{} cannot be picked from the {} of {}", counted(budget, "input"), pool.size(), pool.name);
  }
  return SelectionRun(network, pool, request).run();
}

std::string copies_text(const DataView& pool, const std::vector<std::pair<std::int64_t, std::int64_t>>& copies) {
  auto name = [&](std::int64_t row) {
    return pool.file(row).empty() ? std::to_string(row) : printable(pool.file(row));
  };
  std::string text =
      fmt::format("{} of the {} inputs {} of others", format_count(static_cast<std::int64_t>(copies.size())),
                  format_count(pool.size()), copies.size() == 1 ? "is an exact copy" : "are exact copies");
  for (std::size_t i = 0; i < std::min(copies.size(), kNamedCopies); ++i)
    text += fmt::format("{}{} is {}", i == 0 ? ": " : ", ", name(copies[i].first), name(copies[i].second));
  return text + (copies.size() > kNamedCopies ? ", ..." : "");
}

}  // namespace galvani
