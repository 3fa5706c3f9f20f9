// CAGFuzz's examples (Algorithm 1, lines 8-13): a network trained on the data turns an image into another domain and
// back; what a reference network sees in both must be alike, and of a parent's examples the most similar are taken.
#include "generate/aeg.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/log.h"
#include "galvani/data/similarity.h"
#include "galvani/generate/examples.h"
#include "galvani/trace/deep_features.h"
#include "generate/builtin.h"

namespace galvani {
namespace {

// Constants, for they decide which examples share a micro-batch, and so their last bits.
constexpr std::int64_t kExamplesAtOnce = 1024;
constexpr std::int64_t kExampleMicroBatch = 64;
constexpr const char* kNoFeatures = "none";

class AegGenerator : public Generator {
 public:
  AegGenerator(const Options& options, const GeneratorContext& context)
      : least_(options.real("similarity")),
        top_(options.integer("top")),
        against_seed_(options.text("against") == "seed") {
    if (context.seeds.scalar_type() != at::kByte) bad_usage("aeg makes examples of images only");
    std::vector<std::int64_t> shape = context.seeds.sizes().slice(1).vec();
    const std::string& file = options.text(kExampleNetwork);
    if (file.empty())
      bad_usage(
          "aeg needs a network that makes examples: aeg:model=FILE, or --aeg FILE; "
          "'galvani train-generator --data mnist -o aeg.onnx' trains one");
    load(file, shape, /*any_output=*/true, network_);
    examples_.emplace(*network_);
    class_names_ = context.class_names;
    const std::string& reference = options.text(kReferenceNetwork);
    if (reference.empty())
      bad_usage(
          "aeg needs a network whose features say whether an example is still the same: aeg:features=FILE, or "
          "--reference FILE ('galvani train vgg19:width=8,bn=true --data mnist -o vgg.onnx' trains one); "
          "features=none takes every example");
    if (reference != kNoFeatures) {
      load(reference, shape, /*any_output=*/false, reference_);
      features_ = feature_of(*reference_, options.text("layer"));
    }
    if (examples_->two_ways() && context.network != nullptr) log::info("{}: {}", file, examples_->rule());
  }

  std::string files_sha256() const override {
    std::string files = network_->identity();
    return sha256(reference_ ? files + reference_->identity() : files);
  }

  // What one block is made of.
  struct Block {
    std::vector<Candidate> each;    // parent by parent
    std::vector<float> similarity;  // to what it is held against; empty: not judged
    std::vector<std::int64_t> draws;
    at::Tensor inputs;  // [each, C, H, W] uint8
  };
  Block make_block(const std::vector<PickedParent>& parents, std::size_t first, std::size_t count,
                   std::int64_t energy) const {
    Block block;
    std::vector<at::Tensor> inputs, references;
    for (std::size_t p = first; p < first + count; ++p) {
      inputs.push_back(parents[p].input);
      references.push_back(against_seed_ ? parents[p].seed : parents[p].input);
      for (std::int64_t slot = 0; slot < energy; ++slot) {
        Candidate candidate;
        candidate.parent = p;
        candidate.slot = slot;
        candidate.kind = 0;
        candidate.repeatable = false;
        block.each.push_back(candidate);
        block.draws.push_back(parents[p].iteration * energy + slot);
      }
    }
    at::Tensor originals = at::stack(inputs);
    block.inputs = examples_of(originals, domains_of(parents, first, count), parents, first, energy);
    count_passes(block.inputs.size(0));
    if (reference_) judge(at::stack(references), energy, block);
    at::Tensor same = block.inputs.eq(originals.repeat_interleave(energy, 0)).flatten(1).all(1);
    choose(energy, same, block);
    return block;
  }

  std::size_t parents_at_once(std::int64_t energy) const {
    return static_cast<std::size_t>(std::max<std::int64_t>(1, kExamplesAtOnce / energy));
  }

 private:
  void load(const std::string& file, const std::vector<std::int64_t>& shape, bool any_output,
            std::unique_ptr<Network>& to) const {
    Network::Options how;
    how.execution = {kExampleMicroBatch, false, false};
    how.data_shape = shape;
    how.any_output = any_output;
    to = Network::load(file, how);
    if (to->info().input != shape)
      bad_input("{}: takes images of {}, but those to start from have {}", file,
                fmt::format("{}", fmt::join(to->info().input, "x")), fmt::format("{}", fmt::join(shape, "x")));
  }

  // A lineage stays in the domain of its seed.
  std::vector<char> domains_of(const std::vector<PickedParent>& parents, std::size_t first, std::size_t count) const {
    std::vector<at::Tensor> seeds;
    std::vector<std::string> classes;
    for (std::size_t p = first; p < first + count; ++p) {
      seeds.push_back(parents[p].seed);
      auto label = static_cast<std::size_t>(parents[p].label);
      classes.push_back(label < class_names_.size() ? class_names_[label] : std::to_string(label));
    }
    return examples_->domains(at::stack(seeds), classes);
  }

  // Examples of parents whose picks follow each other are drawn together: the row of an example is its number in the
  // campaign.
  at::Tensor examples_of(const at::Tensor& originals, const std::vector<char>& domains,
                         const std::vector<PickedParent>& parents, std::size_t first, std::int64_t energy) const {
    std::vector<at::Tensor> parts;
    std::int64_t count = originals.size(0);
    for (std::int64_t begin = 0; begin < count;) {
      const PickedParent& leader = parents[first + static_cast<std::size_t>(begin)];
      std::int64_t end = begin + 1;
      while (end < count && parents[first + static_cast<std::size_t>(end)].iteration == leader.iteration + end - begin)
        ++end;
      Application how;
      how.random = RandomLayers{leader.base.derive("examples").next_u64(), leader.iteration * energy, {}};
      at::Tensor repeated = originals.narrow(0, begin, end - begin).repeat_interleave(energy, 0);
      std::vector<char> ways;
      for (std::int64_t i = begin; i < end; ++i)
        ways.insert(ways.end(), static_cast<std::size_t>(energy), domains[static_cast<std::size_t>(i)]);
      parts.push_back(to_bytes(examples_->make(repeated, ways, how).examples));
      begin = end;
    }
    return parts.size() == 1 ? parts[0] : at::cat(parts);
  }

  void judge(const at::Tensor& references, std::int64_t energy, Block& block) const {
    at::Tensor theirs = deep_features(*reference_, features_, references);
    at::Tensor own = deep_features(*reference_, features_, block.inputs);
    count_passes(references.size(0) + own.size(0));
    at::Tensor similarity = cosines(theirs.repeat_interleave(energy, 0), own).contiguous();
    block.similarity.assign(similarity.data_ptr<float>(), similarity.data_ptr<float>() + similarity.numel());
  }

  // The most similar of every parent, if they are similar enough and no copies.
  void choose(std::int64_t energy, const at::Tensor& same, Block& block) const {
    const bool* is_copy = same.data_ptr<bool>();
    auto each = static_cast<std::size_t>(energy);
    for (std::size_t begin = 0; begin < block.each.size(); begin += each) {
      std::vector<std::size_t> order(each);
      std::iota(order.begin(), order.end(), begin);
      if (!block.similarity.empty())
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return block.similarity[a] > block.similarity[b]; });
      std::int64_t taken = 0;
      for (std::size_t row : order) {
        bool eligible = block.similarity.empty() || static_cast<double>(block.similarity[row]) >= least_;
        if (!eligible || is_copy[row] || (top_ > 0 && taken >= top_)) continue;
        block.each[row].valid = true;
        ++taken;
      }
    }
  }

  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override;
  at::Tensor run_make(const std::string& provenance, const at::Tensor&, const at::Tensor&) const override {
    bad_usage("'{}' is an example that a network drew, which its name alone cannot make again", printable(provenance));
  }

  std::unique_ptr<Network> network_;
  std::optional<ImageToImage> examples_;
  std::vector<std::string> class_names_;  // may be empty
  std::unique_ptr<Network> reference_;    // null: similarity is not judged
  FeatureNeed features_;
  double least_;
  std::int64_t top_;
  bool against_seed_;
};

class AegProposal : public Proposal {
 public:
  AegProposal(const AegGenerator& generator, std::vector<PickedParent> picked, const PickOrder& order)
      : Proposal(generator, std::move(picked), order), aeg_(generator) {}

 private:
  Candidates run(std::int64_t most) override {
    given_.clear();
    while (given_.empty() && (next_ < order_.size() || parent_ < parents().size())) {
      if (next_ == order_.size()) begin_block();
      hand_out(most);
    }
    Candidates result;
    std::vector<std::int64_t> rows;
    for (std::size_t row : given_) {
      result.each.push_back(block_.each[row]);
      rows.push_back(static_cast<std::int64_t>(row));
    }
    if (!rows.empty()) result.inputs = block_.inputs.index_select(0, at::tensor(rows, at::kLong));
    return result;
  }

  void begin_block() {
    std::size_t count = std::min(aeg_.parents_at_once(order().energy), parents().size() - parent_);
    block_ = aeg_.make_block(parents(), parent_, count, order().energy);
    parent_ += count;
    order_.resize(block_.each.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    next_ = 0;
    if (!order().stop_at_kept) return;
    // One of every parent, then the next of each.
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return block_.each[a].slot < block_.each[b].slot; });
  }

  void hand_out(std::int64_t most) {
    for (; next_ < order_.size() && static_cast<std::int64_t>(given_.size()) < most; ++next_) {
      const Candidate& candidate = block_.each[order_[next_]];
      bool next_round = order().stop_at_kept && !given_.empty() && candidate.slot != block_.each[given_.front()].slot;
      if (next_round) return;
      if (!closed(candidate.parent)) given_.push_back(order_[next_]);
    }
  }

  std::string run_provenance(std::size_t row) const override {
    return fmt::format("aeg:draw={}", block_.draws[given_[row]]);
  }
  // How alike the deep features are, and how alike the images are to the seed.
  std::vector<std::pair<std::string, double>> run_figures(std::size_t row) const override {
    std::size_t at = given_[row];
    at::Tensor made = block_.inputs[static_cast<std::int64_t>(at)].contiguous();
    at::Tensor seed = parents()[block_.each[at].parent].seed.contiguous();
    double ssim = structural_similarity(made.data_ptr<std::uint8_t>(), seed.data_ptr<std::uint8_t>(), made.size(0),
                                        made.size(1), made.size(2));
    std::vector<std::pair<std::string, double>> figures = {{"ssim", ssim}};
    if (!block_.similarity.empty()) figures.emplace_back("similarity", static_cast<double>(block_.similarity[at]));
    return figures;
  }

  const AegGenerator& aeg_;
  std::size_t parent_ = 0;  // the first that is in no block yet
  AegGenerator::Block block_;
  std::vector<std::size_t> order_;  // in which the block is handed out
  std::size_t next_ = 0;
  std::vector<std::size_t> given_;  // rows of the block that the last call gave
};

std::unique_ptr<Proposal> AegGenerator::run_begin(std::vector<PickedParent> parents, const PickOrder& order) const {
  return std::make_unique<AegProposal>(*this, std::move(parents), order);
}

}  // namespace

GeneratorEntry aeg_generator_entry() {
  return {
      "aeg",
      "examples of a network trained on the data (galvani train-generator), judged by deep features (CAGFuzz)",
      {{kExampleNetwork, std::string(), "network that turns an image into an example", {}, {}, {}},
       {kReferenceNetwork, std::string(), "network whose features judge it; none: nothing does", {}, {}, {}},
       {"layer", std::string("penultimate"), "its features: encoder, penultimate, or the name of a tap", {}, {}, {}},
       {"similarity", 0.9, "least cosine of the features", -1.0, 1.0, {}},
       {"top", std::int64_t{5}, "examples of a parent that are taken, the most similar; 0: all", 0.0, 1e6, {}},
       {"against", std::string("parent"), "what an example is held against", {}, {}, {"parent", "seed"}}},
      [](const Options& options, const GeneratorContext& context) -> std::unique_ptr<Generator> {
        return std::make_unique<AegGenerator>(options, context);
      }};
}

}  // namespace galvani
