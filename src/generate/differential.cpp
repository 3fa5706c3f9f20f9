#include "generate/differential.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/archive.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/model/evaluate.h"
#include "generate/builtin.h"

namespace galvani {
namespace {

// What the inputs of a block may take, with gradients. A constant, for it decides who shares a micro-batch.
constexpr std::int64_t kBlockBytes = std::int64_t{256} << 20;

using Climber = Differential::Climber;

class DifferentialProposal : public Proposal {
 public:
  DifferentialProposal(const Differential& differential, std::vector<PickedParent> picked, const PickOrder& order)
      : Proposal(differential, std::move(picked), order),
        differential_(differential),
        starts_(differential.starts(parents())) {}

 private:
  Candidates run(std::int64_t most) override {
    if (next_ == climbers_.size()) {
      climbers_ = differential_.climb(parents(), starts_, due(differential_.block()), differential_.steps());
      next_ = 0;
    }
    Candidates result;
    std::vector<at::Tensor> inputs;
    given_ = next_;
    for (; next_ < climbers_.size() && static_cast<std::int64_t>(inputs.size()) < most; ++next_) {
      const Climber& climber = climbers_[next_];
      result.each.push_back(climber.candidate);
      inputs.push_back(climber.candidate.valid ? climber.found : parents()[climber.candidate.parent].input);
    }
    if (!inputs.empty()) result.inputs = at::stack(inputs);
    return result;
  }
  std::string run_provenance(std::size_t row) const override { return climbers_[given_ + row].provenance; }
  // How far it is from its seed, as a share of the full scale, after how many steps, and how many models differ.
  std::vector<std::pair<std::string, double>> run_figures(std::size_t row) const override {
    const Climber& climber = climbers_[given_ + row];
    at::Tensor change = climber.found.to(at::kDouble) - climber.start->seed.to(at::kDouble);
    return {{"steps", static_cast<double>(climber.steps)},
            {"differ", static_cast<double>(climber.differ)},
            {"l2", change.norm().item<double>() / differential_.full()},
            {"linf", change.abs().max().item<double>() / differential_.full()}};
  }

  const Differential& differential_;
  std::vector<Differential::Start> starts_;
  std::vector<Climber> climbers_;
  std::size_t given_ = 0;  // where the last call begins
  std::size_t next_ = 0;
};

// The rows' terms as tensors, [K, width] each; rows with fewer have terms of weight 0.
struct TermTable {
  at::Tensor places, weights;

  template <class Places, class Weights>
  TermTable(const std::vector<Climber*>& climbers, Places places_of, Weights weights_of) {
    std::size_t width = 0;
    for (const Climber* climber : climbers) width = std::max(width, places_of(*climber).size());
    auto rows = static_cast<std::int64_t>(climbers.size());
    places = at::zeros({rows, static_cast<std::int64_t>(width)}, at::kLong);
    weights = at::zeros({rows, static_cast<std::int64_t>(width)}, at::kFloat);
    for (std::size_t i = 0; i < climbers.size(); ++i) {
      const auto& from = places_of(*climbers[i]);
      std::copy(from.begin(), from.end(), places.data_ptr<std::int64_t>() + i * width);
      const auto& by = weights_of(*climbers[i]);
      std::copy(by.begin(), by.end(), weights.data_ptr<float>() + i * width);
    }
  }
  bool empty() const { return places.size(1) == 0; }
  // Their sum over values [B, ...], for the rows of a pass.
  at::Tensor sum(const at::Tensor& values, const at::Tensor& rows) const {
    return (values.gather(1, places.index_select(0, rows)) * weights.index_select(0, rows)).sum(1);
  }
};

}  // namespace

// What models say of inputs that are shown as they would be saved.
struct Differential::Shown {
  at::Tensor inputs;                                // [K, ...] of the inputs' type
  std::vector<std::vector<std::int64_t>> verdicts;  // [K] of every model
  std::vector<at::Tensor> gradients;                // [K, ...] float, one a model; empty if not asked for
};

Differential::Differential(const Options& options, const GeneratorContext& context,
                           const std::vector<std::string>& others)
    : network_(context.network),
      shape_(context.seeds[0].sizes().vec()),
      type_(context.seeds.scalar_type()),
      full_(type_ == at::kByte ? 255 : 32768),
      steps_(options.integer("steps")),
      step_(options.real("step") * full_),
      probabilities_(options.text("scores") == "probabilities") {
  for (const std::string& path : others) {
    Network::Options how;
    // As the model under test is run, which a campaign records: what is measured anew may come out otherwise.
    how.execution = {network_ != nullptr ? network_->execution().micro_batch : 1, false, false};
    how.data_shape = shape_;
    others_.push_back(Network::load(path, how));
    const NetworkInfo& info = others_.back()->info();
    if (info.input != shape_)
      bad_input(
          "{}: takes inputs of shape {}, but those to start from have {}; models can be compared on the same ones only",
          path, fmt::format("{}", fmt::join(info.input, "x")), fmt::format("{}", fmt::join(shape_, "x")));
    if (network_ != nullptr && info.classes != network_->info().classes)
      bad_input("{}: has {} classes, but {} has {}; models can be compared on the same ones only", path, info.classes,
                network_->info().path, network_->info().classes);
  }
  if (network_ == nullptr) return;
  for (std::size_t i = 0; i < models(); ++i)
    tables_.emplace_back(model(i), options.text("taps"), context.seeds, options.real("threshold"));
}

Network& Differential::model(std::size_t index) const {
  if (network_ == nullptr) bad_usage("the generator needs the network that is tested");
  return index == 0 ? *network_ : *others_[index - 1];
}

std::string Differential::files_sha256() const {
  std::string all;
  for (const auto& other : others_) all += other->info().sha256 + other->card().preprocess.str();
  return all.empty() ? "" : sha256(all);
}

std::string Differential::probe(const at::Tensor& seed) const {
  std::vector<PickedParent> parents = {{seed, seed, "", 0, 1, Rng(0)}};
  std::vector<Start> from = starts(parents);
  std::vector<Candidate> wanted(4);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i].slot = static_cast<std::int64_t>(i);
  ArchiveWriter out;
  for (const Climber& climber : climb(parents, from, wanted, 1)) {
    if (!climber.x.defined()) continue;
    out.put(climber.provenance);
    at::Tensor shown = climber.x.round();
    out.put(std::string_view(static_cast<const char*>(shown.data_ptr()), shown.nbytes()));
  }
  return sha256(out.bytes());
}

std::int64_t Differential::block() const {
  std::int64_t values = 1;
  for (std::int64_t size : shape_) values *= size;
  // The input, its place on the way, what was found, and the gradients.
  auto bytes = static_cast<std::int64_t>(sizeof(float)) * values * (3 + static_cast<std::int64_t>(models()));
  return std::max<std::int64_t>(1, kBlockBytes / bytes);
}

std::vector<Differential::Start> Differential::starts(const std::vector<PickedParent>& parents) const {
  std::vector<at::Tensor> all;
  for (const PickedParent& parent : parents) all.push_back(parent.input);
  for (const PickedParent& parent : parents) all.push_back(parent.seed);
  at::Tensor inputs = at::stack(all);
  std::vector<at::Tensor> said;
  at::Tensor logits;
  at::Tensor activity;
  for (std::size_t i = 0; i < models(); ++i) {
    Network& network = model(i);
    Request request;
    if (i == 0) request.taps = tables_[0].taps;
    Outputs outputs = network.run(inputs, request);
    said.push_back(verdicts(outputs.logits).contiguous());
    if (i > 0) continue;
    logits = outputs.logits;
    activity = tables_[0].scaled(outputs.taps);
  }
  count_passes(inputs.size(0) * static_cast<std::int64_t>(models()));
  auto n = static_cast<std::int64_t>(parents.size());
  std::vector<Start> result;
  for (std::int64_t i = 0; i < n; ++i) {
    Start start{{}, parents[static_cast<std::size_t>(i)].seed, said[0].data_ptr<std::int64_t>()[n + i], {}, {}};
    for (std::int64_t row : {i, n + i}) {
      bool alike = start.label != kNotANumber && std::all_of(said.begin(), said.end(), [&](const at::Tensor& verdict) {
                     return verdict.data_ptr<std::int64_t>()[row] == start.label;
                   });
      if (!alike) continue;
      start.input = all[static_cast<std::size_t>(row)];
      start.logits = logits[row];
      start.activity = activity[row];
      break;
    }
    result.push_back(std::move(start));
  }
  return result;
}

std::vector<Differential::Climber> Differential::climb(const std::vector<PickedParent>& parents,
                                                       const std::vector<Start>& starts,
                                                       const std::vector<Candidate>& wanted, std::int64_t steps) const {
  std::vector<Climber> climbers(wanted.size());
  std::vector<Climber*> standing;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Climber& climber = climbers[i];
    climber.candidate = wanted[i];
    climber.candidate.repeatable = false;
    climber.start = &starts[wanted[i].parent];
    if (!climber.start->input.defined()) continue;
    climber.rng = parents[wanted[i].parent].stream(wanted[i].slot);
    climber.terms.resize(models());
    aim(climber);
    climber.x = climber.start->input.to(at::kFloat).contiguous();
    standing.push_back(&climber);
  }
  for (std::int64_t step = 0; step <= steps && !standing.empty(); ++step) {
    check_interrupt();
    Shown shown = show(standing, /*gradients=*/step < steps);
    workers().run(static_cast<std::int64_t>(standing.size()), [&](std::int64_t row, int) {
      Climber& climber = *standing[static_cast<std::size_t>(row)];
      std::vector<std::int64_t> said;
      for (const auto& verdicts_of_model : shown.verdicts)
        said.push_back(verdicts_of_model[static_cast<std::size_t>(row)]);
      // Where it begins, all say the same.
      if (step > 0) settle(climber, step, shown.inputs[row], said);
      if (climber.done || shown.gradients.empty()) return;
      std::vector<const float*> slopes;
      for (const at::Tensor& gradient : shown.gradients)
        slopes.push_back(gradient.data_ptr<float>() + row * climber.x.numel());
      ascend(climber, slopes);
    });
    standing.erase(std::remove_if(standing.begin(), standing.end(), [](const Climber* c) { return c->done; }),
                   standing.end());
  }
  for (Climber& climber : climbers)
    climber.candidate.valid =
        climber.found.defined() && !at::equal(climber.found, parents[climber.candidate.parent].input);
  return climbers;
}

Differential::Shown Differential::show(const std::vector<Climber*>& climbers, bool gradients) const {
  Shown shown;
  auto n = static_cast<std::int64_t>(climbers.size());
  std::vector<std::int64_t> sizes = shape_;
  sizes.insert(sizes.begin(), n);
  shown.inputs = at::empty(sizes, type_);
  workers().run(n, [&](std::int64_t row, int) {
    shown.inputs[row].copy_(climbers[static_cast<std::size_t>(row)]->x.round().clamp(low(), high()));
  });
  for (std::size_t i = 0; i < models(); ++i) {
    TermTable by_class(
        climbers, [i](const Climber& c) -> const auto& { return c.terms[i].classes; },
        [i](const Climber& c) -> const auto& { return c.terms[i].class_weights; });
    TermTable by_neuron(
        climbers, [i](const Climber& c) -> const auto& { return c.terms[i].neurons; },
        [i](const Climber& c) -> const auto& { return c.terms[i].neuron_weights; });
    Network& network = model(i);
    Request request;
    if (gradients) {
      if (!by_neuron.empty()) request.taps = tables_[i].taps;
      request.input_gradient = true;
      request.objective = [&](const Pass& pass) {
        at::Tensor rows = at::arange(pass.logits.size(0), at::kLong).clamp_max(pass.count - 1) + pass.first;
        at::Tensor value = by_class.sum(probabilities_ ? pass.logits.softmax(1) : pass.logits, rows);
        if (by_neuron.empty()) return value;
        std::vector<at::Tensor> values;
        for (std::size_t t = 0; t < pass.taps.size(); ++t) {
          const Tap& tap = network.taps()[static_cast<std::size_t>(request.taps[t])];
          std::vector<std::int64_t> axes = tap.other_axes();
          values.push_back(axes.empty() ? pass.taps[t] : pass.taps[t].mean(axes));
        }
        return value + by_neuron.sum(at::cat(values, 1), rows);
      };
    }
    Outputs outputs = network.run(shown.inputs, request);
    at::Tensor said = verdicts(outputs.logits).contiguous();
    shown.verdicts.emplace_back(said.data_ptr<std::int64_t>(), said.data_ptr<std::int64_t>() + n);
    if (gradients) shown.gradients.push_back(outputs.input_gradient.contiguous());
  }
  count_passes(n * static_cast<std::int64_t>(models()));
  return shown;
}

// Looks at what models say of it now: several must differ among themselves, one from what it said.
void Differential::settle(Climber& climber, std::int64_t step, const at::Tensor& shown,
                          const std::vector<std::int64_t>& said) const {
  bool alike = std::all_of(said.begin(), said.end(), [&](std::int64_t verdict) { return verdict == said.front(); });
  climber.done = !alike || (said.size() == 1 && said.front() != climber.start->label);
  if (!climber.done && !worth_showing(climber, shown)) return;
  climber.found = shown.clone();
  climber.steps = step;
  climber.differ =
      std::count_if(said.begin(), said.end(), [&](std::int64_t verdict) { return verdict != climber.start->label; });
}

void Differential::ascend(Climber& climber, const std::vector<const float*>& gradients) const {
  std::vector<float> direction(static_cast<std::size_t>(climber.x.numel()));
  double square = 0;
  for (std::size_t i = 0; i < direction.size(); ++i) {
    double sum = 0;
    for (const float* gradient : gradients) sum += static_cast<double>(gradient[i]);
    direction[i] = static_cast<float>(sum);
    square += sum * sum;
  }
  double length = std::sqrt(square / static_cast<double>(direction.size()));
  // It leads nowhere.
  if (!(length > 0) || !std::isfinite(length)) {
    climber.done = true;
    return;
  }
  for (float& value : direction) value = static_cast<float>(static_cast<double>(value) / length);
  move(climber, direction);
}

std::unique_ptr<Proposal> Differential::run_begin(std::vector<PickedParent> parents, const PickOrder& order) const {
  return std::make_unique<DifferentialProposal>(*this, std::move(parents), order);
}

at::Tensor Differential::run_make(const std::string& provenance, const at::Tensor&, const at::Tensor&) const {
  bad_usage("'{}' is the end of a search, which its name alone cannot make again", printable(provenance));
}

OptionSchema differential_options(std::int64_t steps, double step, double threshold, const std::string& scores) {
  return {{"steps", steps, "at most so many along the gradient", 1.0, 1e6, {}},
          {"step", step, "length of one, as a share of the full scale", 0.0, 1e4, {}, true},
          {"scores", scores, "of classes: before the softmax or after it", {}, {}, {"logits", "probabilities"}},
          {"taps", std::string("default"), "the layers that neurons are chosen of", {}, {}, {}},
          {"threshold", threshold, "above which a neuron's scaled value makes it active", 0.0, 1.0, {}}};
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t from = 0, end = 0; !text.empty() && from <= text.size(); from = end + 1) {
    end = std::min(text.find(',', from), text.size());
    result.push_back(text.substr(from, end - from));
  }
  return result;
}

std::vector<std::string> listed(const std::string& owner, const std::string& option, const std::string& text,
                                const std::vector<std::string>& known) {
  std::vector<std::string> result = split_list(text);
  bool good = !result.empty() && std::all_of(result.begin(), result.end(), [&](const std::string& part) {
    return std::count(known.begin(), known.end(), part) == 1 && std::count(result.begin(), result.end(), part) == 1;
  });
  if (!good)
    bad_usage("{}: {} is '{}', but must be one of {}, or several of them in parentheses", owner, option,
              printable(text), fmt::format("{}", fmt::join(known, ", ")));
  return result;
}

}  // namespace galvani
