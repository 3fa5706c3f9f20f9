#include "galvani/model/trainer.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/model/train.h"
#include "model/train/trainer_impl.h"

namespace galvani {
namespace {

bool names_match(const std::string& patterns, const std::string& name) {
  std::size_t start = 0;
  while (start <= patterns.size()) {
    std::size_t comma = std::min(patterns.find(',', start), patterns.size());
    std::string pattern = patterns.substr(start, comma - start);
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
    if (::fnmatch((pattern + ".*").c_str(), name.c_str(), 0) == 0) return true;
    start = comma + 1;
  }
  return false;
}

}  // namespace

Trainer::Impl::Group Trainer::Impl::make_group(const ParameterGroup& wanted) const {
  Group group;
  group.optimizer_name = Spec::parse(wanted.optimizer).name;
  group.optimizer = optimizers().create(Spec::parse(wanted.optimizer));
  for (const ParameterGroup::Member& member : wanted.members) {
    TrainingGraph& graph = *graphs.at(member.network);
    std::size_t before = group.parameters.size();
    bool frozen = false;
    for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
      if (!names_match(member.parameters, graph.parameter_names()[i])) continue;
      bool stays = !member.frozen.empty() && names_match(member.frozen, graph.parameter_names()[i]);
      if (!stays) group.parameters.push_back(graph.parameters()[i]);
      frozen = frozen || stays;
    }
    if (!member.frozen.empty()) {
      graph.freeze_statistics([&](const std::string& name) { return names_match(member.frozen, name); });
      if (!frozen)
        bad_usage("{} has no trainable parameter '{}' to freeze; it has {}", networks[member.network]->info().path,
                  printable(member.frozen),
                  printable(fmt::format("{}", fmt::join(graph.parameter_names(), ", ")), 200));
      if (group.parameters.size() == before) bad_usage("'{}' freezes everything there is", printable(member.frozen));
    }
    if (group.parameters.size() == before)
      bad_usage("{} has no trainable parameter '{}' for the group '{}'", networks[member.network]->info().path,
                printable(member.parameters), wanted.name);
  }
  group.optimizer->prepare(group.parameters);
  return group;
}

Trainer::Trainer(const std::vector<Network*>& networks, const std::vector<ParameterGroup>& groups,
                 const Options& options)
    : impl_(std::make_unique<Impl>(options)) {
  if (options.batch < 1 || options.micro_batch < 1) bad_usage("batch and micro-batch must be positive");
  std::int64_t slots = (options.batch + options.micro_batch - 1) / options.micro_batch;
  for (Network* network : networks) {
    impl_->networks.push_back(network);
    impl_->graphs.push_back(std::make_unique<TrainingGraph>(network->impl(), slots, options.batch_statistics));
  }
  for (const ParameterGroup& group : groups) impl_->groups.push_back(impl_->make_group(group));
  impl_->state.updates.assign(groups.size(), 0);
}

Trainer::~Trainer() = default;

TrainState& Trainer::state() {
  return impl_->state;
}

const TrainState& Trainer::state() const {
  return impl_->state;
}

const Rng& Trainer::rng() const {
  return impl_->rng;
}

double Trainer::base_rate(std::size_t group) const {
  return impl_->groups.at(group).optimizer->base_rate();
}

std::vector<at::Tensor> Trainer::weights() const {
  std::vector<at::Tensor> all;
  for (const auto& graph : impl_->graphs) {
    all.insert(all.end(), graph->parameters().begin(), graph->parameters().end());
    all.insert(all.end(), graph->statistics().begin(), graph->statistics().end());
  }
  return all;
}

void Trainer::set_weights(const std::vector<at::Tensor>& values) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> live = weights();
  if (values.size() != live.size()) fail(ErrorCode::internal, "{} weights for {}", values.size(), live.size());
  for (std::size_t i = 0; i < live.size(); ++i) live[i].copy_(values[i]);
  for (Network* network : impl_->networks) network->impl().weights_change();
}

Rng Slot::next_stream() {
  // The first call of a slot draws from its stream, every other one from a stream below it.
  Rng dropout = stream_.derive("dropout").derive(static_cast<std::uint64_t>(index_));
  if (calls_ > 0) dropout = dropout.derive("call").derive(calls_);
  calls_ += 1;
  return dropout;
}

std::vector<at::Tensor> Slot::forward(std::size_t network, const at::Tensor& input) {
  return trainer_.impl_->graphs.at(network)->forward(index_, input, next_stream());
}

at::Tensor Slot::input_gradient(std::size_t network, const at::Tensor& input,
                                const std::function<at::Tensor(const at::Tensor& logits)>& number) {
  TrainingGraph& graph = *trainer_.impl_->graphs.at(network);
  std::vector<at::Tensor> statistics = graph.copy_of_statistics(index_);
  at::Tensor leaf = input.detach().requires_grad_(true);
  at::Tensor value = number(graph.forward(index_, leaf, next_stream())[0]);
  at::Tensor gradient = torch::autograd::grad({value}, {leaf}, {}, c10::nullopt, /*create_graph=*/false,
                                              /*allow_unused=*/true)[0];
  // Only now: the backward pass of batch norm looks at them.
  graph.restore_statistics(index_, statistics);
  return gradient.defined() ? gradient : at::zeros_like(input);
}

std::vector<double> Trainer::step(const Step& step, const Loss& loss) {
  Impl& impl = *impl_;
  auto count = static_cast<std::int64_t>(step.rows.size());
  if (count == 0 || count > impl.options.batch)
    fail(ErrorCode::internal, "a step of {} rows where at most {} fit", count, impl.options.batch);
  std::int64_t used = (count + impl.options.micro_batch - 1) / impl.options.micro_batch;
  Rng stream =
      impl.rng.derive({static_cast<std::uint64_t>(impl.state.epoch), static_cast<std::uint64_t>(impl.state.step)});
  if (step.phase > 0) stream = stream.derive("phase").derive(step.phase);
  std::vector<at::Tensor> wanted;
  for (std::size_t g : step.groups)
    wanted.insert(wanted.end(), impl.groups.at(g).parameters.begin(), impl.groups[g].parameters.end());

  struct Result {
    double loss = 0;
    std::vector<double> figures;
    std::vector<at::Tensor> gradients;
  };
  std::vector<Result> results(static_cast<std::size_t>(used));
  for (auto& graph : impl.graphs) graph->spread_statistics();
  workers().run(used, [&](std::int64_t index, int) {
    auto first = step.rows.begin() + index * count / used;
    auto last = step.rows.begin() + (index + 1) * count / used;
    at::AutoGradMode enable(true);
    Slot slot(*this, index, {first, last}, count, stream);
    SlotLoss found = loss(slot);
    Result& result = results[static_cast<std::size_t>(index)];
    result.gradients = torch::autograd::grad({found.loss}, wanted, {}, c10::nullopt, /*create_graph=*/false,
                                             /*allow_unused=*/true);
    result.loss = found.loss.item<double>();
    result.figures = std::move(found.figures);
  });
  double total = 0;
  std::vector<double> figures(results[0].figures.size());
  for (const Result& result : results) {
    total += result.loss;
    for (std::size_t i = 0; i < figures.size(); ++i) figures[i] += result.figures.at(i);
  }
  if (!std::isfinite(total))
    bad_usage("training diverged: the loss is {}; lower the learning rate (--optimizer {}:lr=...)", total,
              step.groups.empty() ? "sgd" : impl.groups[step.groups[0]].optimizer_name);
  for (auto& graph : impl.graphs) graph->merge_statistics(used);

  std::vector<std::pair<std::size_t, std::size_t>> places;  // group and index in it, of each of `wanted`
  for (std::size_t g : step.groups) {
    impl.state.updates[g] += 1;
    for (std::size_t i = 0; i < impl.groups[g].parameters.size(); ++i) places.emplace_back(g, i);
  }
  workers().run(static_cast<std::int64_t>(wanted.size()), [&](std::int64_t w, int) {
    at::NoGradGuard no_grad;
    at::Tensor sum;
    for (const Result& result : results) {
      const at::Tensor& gradient = result.gradients[static_cast<std::size_t>(w)];
      if (!gradient.defined()) continue;
      if (sum.defined())
        sum.add_(gradient);
      else
        sum = gradient.contiguous();
    }
    if (!sum.defined()) return;
    auto [g, i] = places[static_cast<std::size_t>(w)];
    Optimizer& optimizer = *impl.groups[g].optimizer;
    at::Tensor parameter = impl.groups[g].parameters[i];
    optimizer.update(i, parameter, sum, optimizer.base_rate() * step.rate, impl.state.updates[g]);
    // Optimizers write through pointers, which LibTorch does not count as a change.
    parameter.unsafeGetTensorImpl()->bump_version();
  });
  for (Network* network : impl.networks) network->impl().weights_change();
  return figures;
}

ShuffledRows::ShuffledRows(std::int64_t n, std::int64_t batch, const Rng& rng) : n_(n), batch_(batch), rng_(rng) {}

std::vector<std::int64_t> ShuffledRows::rows(std::int64_t epoch, std::int64_t step) {
  if (epoch != epoch_) {
    order_.resize(static_cast<std::size_t>(n_));
    std::iota(order_.begin(), order_.end(), 0);
    rng_.derive("order").derive(static_cast<std::uint64_t>(epoch)).shuffle(order_);
    epoch_ = epoch;
  }
  auto first = std::min(n_, step * batch_);
  auto last = std::min(n_, first + batch_);
  return {order_.begin() + first, order_.begin() + last};
}

MixedRows::MixedRows(std::int64_t first, std::int64_t second, double share, std::int64_t batch, const Rng& rng)
    : first_(first),
      second_(second),
      size_(std::max(second, static_cast<std::int64_t>(std::llround(static_cast<double>(second) / share)))),
      batch_(batch),
      firsts_(first, 1, rng.derive("first part")),
      seconds_(second, 1, rng.derive("second part")) {}

std::vector<std::int64_t> MixedRows::rows(std::int64_t epoch, std::int64_t step) {
  std::vector<std::int64_t> result;
  for (std::int64_t at = step * batch_; at < std::min(size_, (step + 1) * batch_); ++at) {
    // Spread evenly: the k-th of the second part stands where k / second is passed.
    std::int64_t before = at * second_ / size_;
    if ((at + 1) * second_ / size_ > before) {
      result.push_back(first_ + seconds_.rows(epoch, before)[0]);
    } else {
      std::int64_t shown = epoch * (size_ - second_) + at - before;
      result.push_back(firsts_.rows(shown / first_, shown % first_)[0]);
    }
  }
  return result;
}

}  // namespace galvani
