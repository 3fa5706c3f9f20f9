// Attacks as a generator: of every parent the example that an attack finds, once for each radius.
//
// A parent that breaks within one radius is not attacked again within a larger one, where the same example lies, too.

#include "galvani/generate/attack.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/archive.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/data/snr.h"
#include "generate/builtin.h"

namespace galvani {
namespace {

constexpr const char* kAnyClass = "any";

void parse_aim(const std::string& text, AttackPlan& plan) {
  plan.aim = text;
  if (text == kAnyClass || text == "next" || text == "least" || text == "random") return;
  bool number = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) bad_usage("target '{}' must be any, next, least, random or the number of a class", printable(text));
  const OptionInfo info = {"target", std::int64_t{0}, "", 0.0, 1e9, {}};
  plan.aim = "class";
  plan.target = std::get<std::int64_t>(parse_option("attack", info, text));
}

// A method's spec with options that were given beside it.
Spec with_options(Spec method, const char* option, const std::string& value) {
  const AttackRegistry::Entry& entry = attacks().at(method.name);
  bool known = std::any_of(entry.schema.begin(), entry.schema.end(),
                           [&](const OptionInfo& info) { return info.name == option; });
  bool twice = std::any_of(method.settings.begin(), method.settings.end(),
                           [&](const auto& setting) { return setting.first == option; });
  if (twice) bad_usage("{} of {} is given twice, inside the method and beside it", option, method.name);
  if (!known) bad_usage("{} has no option {}", method.name, option);
  method.settings.emplace_back(option, value);
  return method;
}

AttackPlan plan_of(const Options& options) {
  Spec method = Spec::parse(options.text("method"));
  if (!options.text("norm").empty()) method = with_options(method, "norm", options.text("norm"));
  AttackPlan plan;
  parse_aim(options.text("target"), plan);
  plan.radii = parse_radii(options.text("eps"));
  std::unique_ptr<Attack> as_it_is = make_attack(method);
  if (!as_it_is->bounded() || plan.radii.empty()) {
    if (as_it_is->bounded()) plan.radii = {as_it_is->epsilon()};
    plan.attacks.push_back(std::move(as_it_is));
    return plan;
  }
  for (double radius : plan.radii) {
    if (radius > 0) plan.attacks.push_back(make_attack(with_options(method, "eps", fmt::format("{}", radius))));
  }
  if (plan.attacks.empty()) bad_usage("attack: eps 0 alone changes nothing");
  return plan;
}

class AttackGenerator;

class AttackProposal : public Proposal {
 public:
  AttackProposal(const AttackGenerator& generator, std::vector<PickedParent> parents, const PickOrder& order);

 private:
  struct Made {
    Candidate candidate;
    at::Tensor input;
    std::vector<std::pair<std::string, double>> figures;
  };

  Candidates run(std::int64_t most) override;
  std::string run_provenance(std::size_t row) const override;
  std::vector<std::pair<std::string, double>> run_figures(std::size_t row) const override {
    return made_[given_ + row].figures;
  }
  void attack_all();
  at::Tensor targets(const at::Tensor& inputs, const std::vector<std::size_t>& rows) const;

  const AttackGenerator& attacks_;
  bool attacked_ = false;
  std::vector<Made> made_;
  std::size_t given_ = 0;  // where the last call begins
  std::size_t next_ = 0;
  std::vector<std::int64_t> aims_;  // of each parent; empty: any class
};

class AttackGenerator : public Generator {
 public:
  AttackGenerator(const Options& options, const GeneratorContext& context)
      : network_(context.network), plan_(plan_of(options)) {
    if (network_ != nullptr) plan_.check_target(network_->info().classes);
    if (network_ != nullptr && network_->info().question.by_reference() && plan_.aim != kAnyClass)
      bad_usage("{}: its task is {}, so there are no classes to aim at", network_->info().path,
                to_string(network_->info().question.task));
    double full = context.seeds.scalar_type() == at::kByte ? 255 : 32768;
    for (std::size_t i = 0; i < plan_.attacks.size(); ++i) kinds_.push_back(plan_.kind(i, full));
  }

  std::vector<std::string> kinds() const override { return kinds_; }
  const AttackPlan& plan() const { return plan_; }
  Network& network() const {
    if (network_ == nullptr) bad_usage("an attack needs its network");
    return *network_;
  }
  void count(std::int64_t passes) const { count_passes(passes); }

  // A whole attack would take long, and a step of it shows as much. Without gradients there are only forward passes,
  // which the campaign looks at itself.
  std::string probe(const at::Tensor& seed) const override {
    if (!plan_.attacks.front()->needs_gradients()) return "";
    AttackTask task;
    task.inputs = seed.unsqueeze(0);
    const Question& question = network().info().question;
    if (question.by_reference()) {
      Request request;
      request.answers = true;
      task.references = question.references_of(network().run(task.inputs, request).answers);
      task.labels = at::full({1}, Question::kHolds, at::kLong);
    } else {
      task.labels = network().run(task.inputs).logits.argmax(1);
    }
    task.streams = {Rng(0)};
    Attacked stepped = (*make_attack(Spec{"fgsm", {}}))(network(), task);
    return sha256(std::string(static_cast<const char*>(stepped.inputs.data_ptr()), stepped.inputs.nbytes()));
  }

 private:
  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override {
    return std::make_unique<AttackProposal>(*this, std::move(parents), order);
  }
  at::Tensor run_make(const std::string& provenance, const at::Tensor&, const at::Tensor&) const override {
    bad_usage("'{}' is a step of an attack, which its name alone cannot make again", printable(provenance));
  }

  Network* network_;
  AttackPlan plan_;
  std::vector<std::string> kinds_;
};

AttackProposal::AttackProposal(const AttackGenerator& generator, std::vector<PickedParent> parents,
                               const PickOrder& order)
    : Proposal(generator, std::move(parents), order), attacks_(generator) {}

Candidates AttackProposal::run(std::int64_t most) {
  if (!attacked_) attack_all();
  attacked_ = true;
  Candidates result;
  std::vector<at::Tensor> inputs;
  given_ = next_;
  for (; next_ < made_.size() && static_cast<std::int64_t>(inputs.size()) < most; ++next_) {
    result.each.push_back(made_[next_].candidate);
    inputs.push_back(made_[next_].input);
  }
  if (!inputs.empty()) result.inputs = at::stack(inputs);
  return result;
}

std::string AttackProposal::run_provenance(std::size_t row) const {
  const Candidate& candidate = made_[given_ + row].candidate;
  std::string kind = attacks_.kinds()[static_cast<std::size_t>(candidate.kind)];
  return aims_.empty() ? kind : fmt::format("{}:target={}", kind, aims_[candidate.parent]);
}

void AttackProposal::attack_all() {
  Network& network = attacks_.network();
  std::vector<std::size_t> standing(parents().size());
  for (std::size_t i = 0; i < standing.size(); ++i) standing[i] = i;
  std::vector<at::Tensor> all;
  std::vector<std::int64_t> labels;
  std::vector<at::Tensor> references;
  for (const PickedParent& parent : parents()) {
    all.push_back(parent.input);
    if (parent.reference.defined()) references.push_back(parent.reference);
    labels.push_back(parent.label);
  }
  at::Tensor inputs = at::stack(all);
  at::Tensor every_label = at::tensor(labels, at::kLong);
  at::Tensor every_target = targets(inputs, standing);
  if (every_target.defined())
    aims_.assign(every_target.data_ptr<std::int64_t>(), every_target.data_ptr<std::int64_t>() + every_target.numel());
  for (std::size_t level = 0; level < attacks_.plan().attacks.size() && !standing.empty(); ++level) {
    const Attack& attack = *attacks_.plan().attacks[level];
    std::vector<std::int64_t> rows(standing.begin(), standing.end());
    at::Tensor index = at::tensor(rows, at::kLong);
    AttackTask task;
    task.inputs = inputs.index_select(0, index);
    task.labels = every_label.index_select(0, index);
    if (!references.empty()) task.references = at::stack(references).index_select(0, index);
    if (every_target.defined()) task.targets = every_target.index_select(0, index);
    for (std::size_t i : standing) task.streams.push_back(parents()[i].stream(static_cast<std::int64_t>(level)));
    task.progress = [](std::int64_t) { check_interrupt(); };
    Attacked found = attack(network, task);
    attacks_.count(found.forward.sum().item<std::int64_t>());
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < standing.size(); ++i) {
      auto row = static_cast<std::int64_t>(i);
      Made made;
      made.candidate.parent = standing[i];
      made.candidate.slot = static_cast<std::int64_t>(level);
      made.candidate.kind = static_cast<int>(level);
      // What fooled the network before it was rounded is shown to it as it would be saved.
      made.candidate.valid = found.success_float[row].item<bool>() || found.success[row].item<bool>();
      made.candidate.repeatable = false;
      made.input = found.inputs[row];
      made.figures = {{"l0", found.l0[row].item<double>()},
                      {"l2", found.l2[row].item<double>()},
                      {"linf", found.linf[row].item<double>()},
                      {"forward", static_cast<double>(found.forward[row].item<std::int64_t>())},
                      {"backward", static_cast<double>(found.backward[row].item<std::int64_t>())}};
      const at::Tensor& origin = parents()[standing[i]].input;
      if (origin.scalar_type() == at::kShort) {
        double snr = signal_to_noise(origin.data_ptr<std::int16_t>(), made.input.contiguous().data_ptr<std::int16_t>(),
                                     static_cast<std::size_t>(origin.numel()));
        if (std::isfinite(snr)) made.figures.emplace_back("snr", snr);
      }
      if (attack.bounded()) made.figures.insert(made.figures.begin(), {"eps", attack.epsilon()});
      if (!found.success[row].item<bool>()) left.push_back(standing[i]);
      made_.push_back(std::move(made));
    }
    standing = std::move(left);
  }
  std::stable_sort(made_.begin(), made_.end(),
                   [](const Made& a, const Made& b) { return a.candidate.parent < b.candidate.parent; });
}

// The class each parent is to become; undefined: any other. One that is the parent's own is replaced by the next.
at::Tensor AttackProposal::targets(const at::Tensor& inputs, const std::vector<std::size_t>& rows) const {
  const AttackPlan& plan = attacks_.plan();
  if (plan.aim == kAnyClass) return {};
  std::int64_t classes = attacks_.network().info().classes;
  at::Tensor least;
  if (plan.aim == "least") {
    least = attacks_.network().run(inputs).logits.argmin(1).contiguous();
    attacks_.count(inputs.size(0));
  }
  std::vector<std::int64_t> result;
  for (std::size_t i : rows) {
    std::int64_t label = parents()[i].label;
    std::int64_t target = plan.target;
    if (plan.aim == "next") target = (label + 1) % classes;
    if (plan.aim == "least") target = least.data_ptr<std::int64_t>()[i];
    if (plan.aim == "random") {
      Rng rng = parents()[i].stream(0).derive("target");
      target = (label + 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(classes - 1)))) % classes;
    }
    result.push_back(target == label ? (label + 1) % classes : target);
  }
  return at::tensor(result, at::kLong);
}

}  // namespace

std::string AttackPlan::kind(std::size_t attack, double full) const {
  const Attack& one = *attacks[attack];
  return one.bounded() ? fmt::format("{} {}", one.id(), radius_text(one.epsilon(), full)) : one.id();
}

void AttackPlan::check_target(std::int64_t classes) const {
  if (aim == "class" && target >= classes)
    bad_usage("the model has no class {} to turn inputs into; it has {}, from 0", target, classes);
}

AttackPlan plan_attack(const Spec& generator) {
  if (generator.name != "attack") bad_usage("'{}' is not the generator attack", printable(generator.str()));
  return plan_of(generators().options(generator));
}

GeneratorEntry attack_generator_entry() {
  return {"attack",
          "what an attack finds near its parent, once for each radius (docs/attacks.md)",
          {{"method", std::string("pgd"), "the attack with its options, such as (pgd:steps=40)", {}, {}, {}},
           {"eps", std::string(), "radii, as shares of the full scale, such as 8/255 or (1/255,2/255)", {}, {}, {}},
           {"norm", std::string(), "of the ball; empty: the attack's own", {}, {}, {"", "linf", "l2", "l0"}},
           {"target", std::string(kAnyClass), "any, next, least, random, or the number of a class", {}, {}, {}}},
          [](const Options& options, const GeneratorContext& context) -> std::unique_ptr<Generator> {
            return std::make_unique<AttackGenerator>(options, context);
          }};
}

}  // namespace galvani
