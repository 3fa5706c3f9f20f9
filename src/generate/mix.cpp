// Two generators in one: a part of every parent's candidates is made by the one, the rest by the other.
#include "generate/mix.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "generate/builtin.h"

namespace galvani {
namespace {

constexpr std::size_t kTwo = 2;

// What each of the two has to know of a lineage, in one text: the length of the first, then both.
std::string joined_memo(const std::vector<std::string>& memos) {
  if (memos[0].empty() && memos[1].empty()) return "";
  return fmt::format("{} {}{}", memos[0].size(), memos[0], memos[1]);
}

std::vector<std::string> split_memo(const std::string& memo) {
  if (memo.empty()) return {"", ""};
  std::size_t space = memo.find(' ');
  std::size_t length = space == std::string::npos ? 0 : std::strtoull(memo.c_str(), nullptr, 10);
  if (space == std::string::npos || space + 1 + length > memo.size())
    fail(ErrorCode::internal, "'{}' is no memo of a mix", printable(memo));
  return {memo.substr(space + 1, length), memo.substr(space + 1 + length)};
}

class MixGenerator : public Generator {
 public:
  MixGenerator(const Options& options, const GeneratorContext& context) : share_(options.real("share")) {
    for (const char* name : {kFirstGenerator, kSecondGenerator}) {
      const std::string& spec = options.text(name);
      if (spec.empty())
        bad_usage("mix: say what is mixed, such as mix:first=(aeg:model=aeg.onnx,features=vgg.onnx),second=mutate");
      parts_.push_back(make_generator(Spec::parse(spec), context));
    }
    std::vector<std::string> first = parts_[0]->kinds(), second = parts_[1]->kinds();
    for (const std::string& kind : second) {
      if (std::find(first.begin(), first.end(), kind) != first.end())
        bad_usage("mix: both make '{}', so nobody could tell who made one; choose two that differ", kind);
    }
  }

  std::vector<std::string> kinds() const override {
    std::vector<std::string> all = parts_[0]->kinds(), more = parts_[1]->kinds();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string files_sha256() const override {
    std::string files = parts_[0]->files_sha256() + parts_[1]->files_sha256();
    return files.empty() ? "" : sha256(files);
  }
  std::string inherit(const std::string& memo, const std::string& provenance) const override {
    std::vector<std::string> memos = split_memo(memo);
    std::size_t maker = maker_of(provenance);
    memos[maker] = parts_[maker]->inherit(memos[maker], provenance);
    return joined_memo(memos);
  }
  at::Tensor reference(const at::Tensor& seed, const std::string& memo) const override {
    std::vector<std::string> memos = split_memo(memo);
    return parts_[1]->reference(parts_[0]->reference(seed, memos[0]), memos[1]);
  }
  // Steps of the one are not bound by the rules of the other.
  bool valid(const at::Tensor& reference, const at::Tensor& input) const override {
    return parts_[0]->valid(reference, input) || parts_[1]->valid(reference, input);
  }
  std::vector<std::string> weaker(const std::string& provenance) const override {
    return parts_[maker_of(provenance)]->weaker(provenance);
  }

  const Generator& part(std::size_t i) const { return *parts_[i]; }
  // Candidates of a parent that the first makes: one at least of each, where there are two.
  std::int64_t first_energy(std::int64_t energy) const {
    std::int64_t own = std::llround(static_cast<double>(energy) * share_);
    return energy < 2 ? energy : std::clamp<std::int64_t>(own, 1, energy - 1);
  }
  void count(std::int64_t passes) const { count_passes(passes); }

 private:
  std::size_t maker_of(const std::string& provenance) const {
    std::string kind = kind_of(provenance);
    for (std::size_t i = 0; i < kTwo; ++i) {
      std::vector<std::string> own = parts_[i]->kinds();
      if (std::find(own.begin(), own.end(), kind) != own.end()) return i;
    }
    bad_usage("'{}' is not a step of the generators that are mixed", printable(provenance));
  }

  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override;
  at::Tensor run_make(const std::string& provenance, const at::Tensor& parent, const at::Tensor& seed) const override {
    return parts_[maker_of(provenance)]->make(provenance, parent, seed);
  }

  std::vector<std::unique_ptr<Generator>> parts_;
  double share_;
};

class MixProposal : public Proposal {
 public:
  MixProposal(const MixGenerator& mix, std::vector<PickedParent> picked, const PickOrder& order)
      : Proposal(mix, std::move(picked), order), mix_(mix), first_energy_(mix.first_energy(order.energy)) {
    for (std::size_t i = 0; i < kTwo; ++i) {
      std::int64_t energy = i == 0 ? first_energy_ : order.energy - first_energy_;
      if (energy > 0) parts_.push_back(mix.part(i).begin(parents_for(i), {energy, false}));
    }
  }

 private:
  // With the memo that is theirs.
  std::vector<PickedParent> parents_for(std::size_t part) const {
    std::vector<PickedParent> result = parents();
    for (PickedParent& parent : result) parent.memo = split_memo(parent.memo)[part];
    return result;
  }

  Candidates run(std::int64_t most) override {
    for (; current_ < parts_.size(); ++current_) {
      std::int64_t before = mix_.part(current_).passes();
      Candidates candidates = parts_[current_]->next(most);
      mix_.count(mix_.part(current_).passes() - before);
      if (candidates.each.empty()) continue;
      for (Candidate& candidate : candidates.each) {
        if (current_ == 0) continue;
        candidate.slot += first_energy_;
        if (candidate.kind >= 0) candidate.kind += static_cast<int>(mix_.part(0).kinds().size());
      }
      return candidates;
    }
    return {};
  }
  void run_learn(const Outcome& outcome) override {
    if (current_ < parts_.size()) parts_[current_]->learn(outcome);
  }
  std::string run_provenance(std::size_t row) const override { return parts_[current_]->provenance(row); }
  std::vector<std::pair<std::string, double>> run_figures(std::size_t row) const override {
    return parts_[current_]->figures(row);
  }

  const MixGenerator& mix_;
  std::int64_t first_energy_;
  std::vector<std::unique_ptr<Proposal>> parts_;
  std::size_t current_ = 0;
};

std::unique_ptr<Proposal> MixGenerator::run_begin(std::vector<PickedParent> parents, const PickOrder& order) const {
  if (order.stop_at_kept)
    bad_usage(
        "mix makes all candidates of a parent, so it cannot stop at the first that is kept; leave out "
        "--stop-at-kept");
  return std::make_unique<MixProposal>(*this, std::move(parents), order);
}

}  // namespace

GeneratorEntry mix_generator_entry() {
  return {"mix",
          "two generators in one, such as examples and mutation",
          {{kFirstGenerator, std::string(), "the one, such as (aeg:model=aeg.onnx,features=vgg.onnx)", {}, {}, {}},
           {kSecondGenerator, std::string("mutate"), "the other", {}, {}, {}},
           {"share", 0.5, "of a parent's candidates that the first makes", 0.0, 1.0, {}}},
          [](const Options& options, const GeneratorContext& context) -> std::unique_ptr<Generator> {
            return std::make_unique<MixGenerator>(options, context);
          }};
}

}  // namespace galvani
