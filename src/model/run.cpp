// Forward and backward passes over any number of inputs, cut into micro-batches that worker threads take.
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/script.h>

#include <algorithm>
#include <sstream>

#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/log.h"
#include "model/graph_tools.h"
#include "model/limits.h"
#include "model/network_impl.h"
#include "model/packed.h"
#include "model/random_layers.h"

namespace galvani {
namespace {

std::vector<std::int64_t> with_batch(std::int64_t n, std::vector<std::int64_t> shape) {
  shape.insert(shape.begin(), n);
  return shape;
}

// A mask of neurons, [neurons] or [B, neurons], shaped to multiply a tap's value.
at::Tensor spread_over(const at::Tensor& factor, const Tap& tap) {
  std::vector<std::int64_t> shape(tap.shape.size() + 1, 1);
  shape[0] = factor.dim() == 2 ? factor.size(0) : 1;
  shape[static_cast<std::size_t>(tap.axis) + 1] = tap.neurons();
  return factor.reshape(shape);
}

// What a plan of the form `means` does inside the graph, for values that an objective needed whole.
at::Tensor neuron_means(const at::Tensor& value, const Tap& tap) {
  std::vector<std::int64_t> axes = tap.other_axes();
  return axes.empty() ? value : value.mean(axes);
}

void check_masks(const std::vector<Mask>& masks, const std::vector<Tap>& taps, std::int64_t n) {
  for (const Mask& mask : masks) {
    const Tap& tap = taps.at(static_cast<std::size_t>(mask.tap));
    at::IntArrayRef sizes = mask.factor.sizes();
    bool fits = (sizes.size() == 1 && sizes[0] == tap.neurons()) ||
                (sizes.size() == 2 && sizes[0] == n && sizes[1] == tap.neurons());
    if (!fits || mask.factor.scalar_type() != at::kFloat)
      bad_usage("a mask of '{}' must be float of shape [{}] or [{}, {}]", tap.name, tap.neurons(), n, tap.neurons());
  }
}

// How the rows of a request are cut into micro-batches: a function of the request alone.
struct Cut {
  std::int64_t rows;  // of a micro-batch, before padding
  std::int64_t span;  // rows that one worker takes in order

  // `batch` is what a kernel call sees.
  Cut(std::int64_t batch, std::int64_t group) {
    if (group <= batch) {
      rows = span = batch / group * group;
    } else {
      std::int64_t pieces = (group + batch - 1) / batch;
      rows = (group + pieces - 1) / pieces;
      span = group;
    }
  }
};

// One request in progress: the results that workers fill in, row range by row range.
class Run {
 public:
  Run(Network::Impl& impl, const at::Tensor& images, const Request& request, const Execution& form)
      : impl_(impl),
        images_(images),
        request_(request),
        form_(form),
        cut_(form.micro_batch, request.group),
        n_(images.size(0)) {
    if (impl.info.fixed_batch == 0) form_.micro_batch = cut_.rows;
    check_masks(request.masks, impl.taps, n_);
    std::vector<int> masked;
    for (const Mask& mask : request.masks) masked.push_back(mask.tap);
    Executor::Form form_of_taps = request.objective                  ? Executor::Form::whole
                                  : request.form == TapForm::neurons ? Executor::Form::means
                                                                     : Executor::Form::whole_final;
    means_ = form_of_taps == Executor::Form::means;
    plan_ = impl.executor->plan({request.taps, masked, form_of_taps, request.layer_inputs, form.fused,
                                 request.random.has_value(), request.masks_at_end});
    if (asks_answers()) {
      const std::int64_t numbers = impl.info.question.outputs;
      bool fit = !request.references.defined() || (request.references.scalar_type() == at::kFloat &&
                                                   request.references.sizes() == at::IntArrayRef({n_, numbers}));
      if (!fit) fail(ErrorCode::internal, "references must be float, {} for each input", numbers);
      outputs_.answers = at::empty({n_, numbers});
    }
    if (gives_logits()) outputs_.logits = at::empty({n_, impl.info.classes});
    if (request.objective)
      outputs_.objective = at::empty(request.objectives > 0 ? at::IntArrayRef({n_, request.objectives}) : n_);
    if (!request.reducer) allocate();
  }

  Outputs finish() {
    std::int64_t tasks = (n_ + cut_.span - 1) / cut_.span;
    std::int64_t pieces_of_task = (cut_.span + cut_.rows - 1) / cut_.rows;
    pieces_.resize(static_cast<std::size_t>(tasks * pieces_of_task));
    CrewWork work(tasks);
    work.run([&](std::int64_t task, int) {
      std::int64_t last = std::min((task + 1) * cut_.span, n_);
      std::int64_t piece = task * pieces_of_task;
      for (std::int64_t first = task * cut_.span; first < last; first += cut_.rows)
        run_piece(first, std::min(cut_.rows, last - first), pieces_[static_cast<std::size_t>(piece++)]);
    });
    if (work.cut() && n_ > 0) exchange(work, pieces_of_task);
    join();
    return std::move(outputs_);
  }

 private:
  // Whether the graph gives answers, of which references make scores.
  bool asks_answers() const { return impl_.info.question.by_reference(); }
  bool gives_logits() const { return !asks_answers() || request_.references.defined(); }

  // What the graph gave for a micro-batch, as scores; without references as it is.
  at::Tensor scores(const at::Tensor& output, std::int64_t first, std::int64_t count) const {
    at::Tensor rows = as_rows(output);
    if (!asks_answers() || !request_.references.defined()) return rows;
    return impl_.info.question.scores(rows, padded_rows(request_.references, first, count, form_.micro_batch));
  }

  // What other processes have computed.
  void exchange(const CrewWork& work, std::int64_t pieces_of_task) {
    auto share = [&](const at::Tensor& rows) {
      if (rows.defined()) work.share(rows.data_ptr(), rows.nbytes() / static_cast<std::size_t>(n_), cut_.span, n_);
    };
    share(outputs_.logits);
    share(outputs_.answers);
    share(outputs_.objective);
    share(outputs_.input_gradient);
    for (const auto* list : {&outputs_.taps, &outputs_.tap_gradients, &outputs_.mask_gradients}) {
      for (const at::Tensor& rows : *list) share(rows);
    }
    if (request_.reducer || !request_.layer_inputs.empty())
      share_pieces(work, pieces_, static_cast<std::size_t>(pieces_of_task));
  }

  // Where the rows of all micro-batches are gathered.
  void allocate() {
    for (int tap : request_.taps) {
      const Tap& t = tap_at(tap);
      auto full = with_batch(n_, t.shape);
      outputs_.taps.push_back(request_.form == TapForm::full ? at::empty(full) : at::empty({n_, t.neurons()}));
      if (request_.objective && request_.tap_gradients)
        outputs_.tap_gradients.push_back(at::zeros(gradient_shape(t.shape)));
    }
    if (!request_.objective) return;
    if (request_.input_gradient) outputs_.input_gradient = at::empty(gradient_shape(impl_.info.input));
    if (request_.mask_gradients) {
      for (const Mask& mask : request_.masks)
        outputs_.mask_gradients.push_back(at::zeros(gradient_shape({tap_at(mask.tap).neurons()})));
    }
  }

  std::vector<std::int64_t> gradient_shape(std::vector<std::int64_t> shape) const {
    if (request_.objectives > 0) shape.insert(shape.begin(), request_.objectives);
    return with_batch(n_, std::move(shape));
  }

  const Tap& tap_at(int index) const { return impl_.taps.at(static_cast<std::size_t>(index)); }

  void run_piece(std::int64_t first, std::int64_t count, std::vector<at::Tensor>& kept) {
    if (request_.interruptible) check_interrupt();
    if (request_.objective) {
      Outputs part = differentiate(first, count);
      at::NoGradGuard no_grad;
      keep(part, first, kept);
    } else {
      c10::InferenceMode inference;
      keep(forward(first, count), first, kept);
    }
  }

  // Gathers a micro-batch's rows, or what the reducer makes of them.
  void keep(const Outputs& part, std::int64_t first, std::vector<at::Tensor>& kept) {
    if (gives_logits()) put(outputs_.logits, part.logits, first);
    if (asks_answers()) put(outputs_.answers, part.answers, first);
    if (request_.objective) put(outputs_.objective, part.objective, first);
    if (request_.reducer) {
      kept = request_.reducer(part, first);
      return;
    }
    for (std::size_t i = 0; i < part.taps.size(); ++i) put(outputs_.taps[i], part.taps[i], first);
    for (const at::Tensor& input : part.layer_inputs) kept.push_back(input.contiguous());
    if (part.input_gradient.defined()) put(outputs_.input_gradient, part.input_gradient, first);
    for (std::size_t i = 0; i < part.tap_gradients.size(); ++i)
      put(outputs_.tap_gradients[i], part.tap_gradients[i], first);
    for (std::size_t i = 0; i < part.mask_gradients.size(); ++i)
      put(outputs_.mask_gradients[i], part.mask_gradients[i], first);
  }

  // What the micro-batches left to be joined, in order.
  void join() {
    std::vector<at::Tensor>& joined = request_.reducer ? outputs_.reduced : outputs_.layer_inputs;
    for (std::size_t i = 0; !pieces_.empty() && i < pieces_[0].size(); ++i) {
      std::vector<at::Tensor> of_all;
      for (const auto& piece : pieces_) {
        if (piece.size() != pieces_[0].size())
          fail(ErrorCode::internal, "a reducer must return as many tensors for every micro-batch");
        of_all.push_back(piece[i]);
      }
      joined.push_back(at::cat(of_all));
    }
  }

  at::Tensor input(std::int64_t first, std::int64_t count) const {
    return impl_.prepare(padded_rows(images_, first, count, form_.micro_batch), form_);
  }

  std::vector<at::Tensor> mask_rows(std::int64_t first, std::int64_t count) const {
    std::vector<at::Tensor> rows;
    for (const Mask& mask : request_.masks)
      rows.push_back(mask.factor.dim() == 2 ? padded_rows(mask.factor, first, count, form_.micro_batch) : mask.factor);
    return rows;
  }

  std::vector<at::Tensor> spread(const std::vector<at::Tensor>& factors) const {
    std::vector<at::Tensor> result;
    for (std::size_t i = 0; i < factors.size(); ++i)
      result.push_back(spread_over(factors[i], tap_at(request_.masks[i].tap)));
    return result;
  }

  static void put(at::Tensor& all, const at::Tensor& rows, std::int64_t first) {
    all.narrow(0, first, rows.size(0)).copy_(rows);
  }

  // Runs the plan. Shapes may depend on the data (Unique, NonZero): what differs from the probe must not be spread over
  // the rows of a result.
  std::vector<at::Tensor> run_plan(const at::Tensor& x, const std::vector<at::Tensor>& masks,
                                   std::int64_t first) const {
    RandomLayers random = request_.random.value_or(RandomLayers());
    RandomScope draws(random, first, form_.micro_batch);
    std::vector<at::Tensor> values = plan_->run(x, masks);
    auto fits = [&](const at::Tensor& value, std::int64_t units) {
      return value.dim() > 0 && value.size(0) == form_.micro_batch && value.numel() == form_.micro_batch * units;
    };
    bool fit = fits(values[0], asks_answers() ? impl_.info.question.outputs : impl_.info.classes);
    for (std::size_t i = 0; i < request_.taps.size() && fit; ++i) {
      const Tap& tap = tap_at(request_.taps[i]);
      fit = fits(values[i + 1], means_ ? tap.neurons() : tap.units());
    }
    if (!fit) bad_input("{}: the shape of its results depends on the images, which is not supported", impl_.info.path);
    return values;
  }

  // The rows of a micro-batch's values that are not padding.
  Outputs values_of(const std::vector<at::Tensor>& values, std::int64_t first, std::int64_t count) const {
    Outputs part;
    if (gives_logits()) part.logits = scores(values[0], first, count).narrow(0, 0, count);
    if (asks_answers()) part.answers = as_rows(values[0]).narrow(0, 0, count);
    for (std::size_t i = 0; i < request_.taps.size(); ++i) {
      bool reduce = request_.objective && request_.form == TapForm::neurons;
      at::Tensor value = reduce ? neuron_means(values[i + 1], tap_at(request_.taps[i])) : values[i + 1];
      part.taps.push_back(value.narrow(0, 0, count));
    }
    return part;
  }

  Outputs forward(std::int64_t first, std::int64_t count) const {
    std::vector<at::Tensor> values = run_plan(input(first, count), spread(mask_rows(first, count)), first);
    Outputs part = values_of(values, first, count);
    for (std::size_t i = 1 + request_.taps.size(); i < values.size(); ++i)
      part.layer_inputs.push_back(values[i].narrow(0, 0, count));
    return part;
  }

  // The gradients of the objective's columns, one backward pass each: [B, ...] or [B, K, ...] for each of `wanted`,
  // zero where the objective does not depend on it.
  std::vector<at::Tensor> gradients(const at::Tensor& objective, const std::vector<at::Tensor>& wanted,
                                    std::int64_t count) const {
    std::int64_t columns = std::max<std::int64_t>(1, request_.objectives);
    std::vector<std::vector<at::Tensor>> found(wanted.size());
    for (std::int64_t k = 0; k < columns; ++k) {
      at::Tensor column = request_.objectives > 0 ? objective.select(1, k) : objective;
      std::vector<at::Tensor> of_column(wanted.size());
      if (!wanted.empty() && objective.requires_grad())
        of_column = torch::autograd::grad({column.narrow(0, 0, count).sum()}, wanted, {},
                                          /*retain_graph=*/k + 1 < columns, /*create_graph=*/false,
                                          /*allow_unused=*/true);
      at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < wanted.size(); ++i)
        found[i].push_back(of_column[i].defined() ? of_column[i] : at::zeros_like(wanted[i]));
    }
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> result;
    for (const auto& of_value : found) result.push_back(request_.objectives > 0 ? at::stack(of_value, 1) : of_value[0]);
    return result;
  }

  // [B, ...] or [B, K, ...] with respect to the prepared input → with respect to the pixels.
  at::Tensor pull_back(const at::Tensor& gradient) const {
    auto of_files = [&](const at::Tensor& of_input) { return from_graph(impl_.info, impl_.card.preprocess, of_input); };
    if (request_.objectives == 0) return of_files(gradient);
    at::Tensor pixels = of_files(gradient.flatten(0, 1));
    return pixels.unflatten(0, std::vector<std::int64_t>{gradient.size(0), gradient.size(1)});
  }

  Outputs differentiate(std::int64_t first, std::int64_t count) const {
    at::AutoGradMode enable(true);
    at::Tensor x = input(first, count).requires_grad_(true);
    std::vector<at::Tensor> masks = mask_rows(first, count);
    if (request_.mask_gradients) {
      for (at::Tensor& mask : masks) {
        if (mask.dim() == 1) mask = mask.expand({form_.micro_batch, mask.size(0)});
        mask = mask.clone().requires_grad_(true);
      }
    }
    std::vector<at::Tensor> values = run_plan(x, spread(masks), first);
    Pass pass{scores(values[0], first, count), {values.begin() + 1, values.end()}, first, count};
    at::Tensor objective = request_.objective(pass);
    bool fits = objective.dim() == (request_.objectives > 0 ? 2 : 1) && objective.size(0) == form_.micro_batch &&
                (request_.objectives == 0 || objective.size(1) == request_.objectives);
    if (!fits) fail(ErrorCode::internal, "an objective must give one number per input, or as many as the request says");
    std::vector<at::Tensor> wanted;
    if (request_.input_gradient) wanted.push_back(x);
    if (request_.tap_gradients) wanted.insert(wanted.end(), pass.taps.begin(), pass.taps.end());
    if (request_.mask_gradients) wanted.insert(wanted.end(), masks.begin(), masks.end());
    std::vector<at::Tensor> all = gradients(objective, wanted, count);
    at::NoGradGuard no_grad;
    for (at::Tensor& value : values) value = value.detach();
    Outputs part = values_of(values, first, count);
    part.objective = objective.detach().narrow(0, 0, count);
    auto next = all.begin();
    auto take = [&] { return (next++)->narrow(0, 0, count); };
    if (request_.input_gradient) part.input_gradient = pull_back(*next++).narrow(0, 0, count);
    for (std::size_t i = 0; request_.tap_gradients && i < pass.taps.size(); ++i) part.tap_gradients.push_back(take());
    for (std::size_t i = 0; request_.mask_gradients && i < masks.size(); ++i) part.mask_gradients.push_back(take());
    return part;
  }

  Network::Impl& impl_;
  const at::Tensor& images_;
  const Request& request_;
  Execution form_;
  Cut cut_;
  std::int64_t n_;
  std::shared_ptr<const Plan> plan_;
  bool means_ = false;  // the plan gives taps in that form
  Outputs outputs_;
  std::vector<std::vector<at::Tensor>> pieces_;  // of each micro-batch, what is joined at the end
};

}  // namespace

at::Tensor padded_rows(const at::Tensor& all, std::int64_t first, std::int64_t count, std::int64_t size) {
  at::Tensor rows = all.narrow(0, first, count);
  if (count == size) return rows;
  std::vector<std::int64_t> repeat(static_cast<std::size_t>(all.dim()), -1);
  repeat[0] = size - count;
  return at::cat({rows, rows.narrow(0, count - 1, 1).expand(repeat)});
}

std::int64_t numbers_of_a_row(const at::Tensor& output, std::int64_t batch) {
  if (output.dim() < 1 || batch < 1 || output.size(0) != batch || !output.is_floating_point()) return 0;
  std::int64_t numbers = output.numel() / batch;
  return output.dim() == 1 || numbers == output.size(1) ? numbers : 0;
}

at::Tensor as_rows(const at::Tensor& output) {
  return output.dim() == 2 ? output : output.reshape({output.size(0), -1});
}

at::Tensor probe_images(std::int64_t size, const std::vector<std::int64_t>& shape) {
  at::Tensor period = at::arange(256, at::kLong).mul_(7919).remainder_(256).to(at::kByte);
  std::int64_t values = size;
  for (std::int64_t n : shape) values *= n;
  return period.repeat({values / 256 + 1}).narrow(0, 0, values).view(with_batch(size, shape));
}

at::Tensor to_graph(const NetworkInfo& info, const Preprocess& preprocess, const at::Tensor& inputs) {
  at::Tensor values = preprocess.apply(inputs);
  return info.graph_input.empty() ? values : values.reshape(with_batch(inputs.size(0), info.graph_input));
}

at::Tensor from_graph(const NetworkInfo& info, const Preprocess& preprocess, const at::Tensor& gradient) {
  if (info.graph_input.empty()) return preprocess.pull_back(gradient);
  std::vector<std::int64_t> shape = info.input;
  if (preprocess.channels_last) std::rotate(shape.begin(), shape.begin() + 1, shape.end());
  return preprocess.pull_back(gradient.reshape(with_batch(gradient.size(0), shape)));
}

at::Tensor Network::Impl::prepare(const at::Tensor& images, const Execution& form) const {
  at::Tensor input = to_graph(info, card.preprocess, images);
  if (takes_bytes()) input.round_().clamp_(0, 255);
  if (!info.graph_input.empty()) return input;
  return form.channels_last ? input.contiguous(at::MemoryFormat::ChannelsLast) : input;
}

std::string no_references(const NetworkInfo& info) {
  return fmt::format(
      "its task is {}, which is not supported here yet; it is by inspect, predict, cover, fuzz with guides of "
      "coverage, "
      "attack, replay, faults and report",
      to_string(info.question.task));
}

void check_inputs(const Network& network, const at::Tensor& inputs) {
  at::ScalarType numbers = inputs.scalar_type();
  if (numbers != at::kByte && numbers != at::kShort && numbers != at::kFloat)
    bad_usage("images must be bytes or floats, sounds 16-bit integers or floats");
  check_fits(network, inputs, "the request");
}

Outputs Network::run(const at::Tensor& images, const Request& request) {
  Impl& impl = *impl_;
  check_inputs(*this, images);
  check_classes(impl.info);
  if (impl.info.question.by_reference() && !request.references.defined() && !request.answers)
    bad_input("{}: {}", impl.info.path, no_references(impl.info));
  if (request.group < 1 || images.size(0) % request.group != 0)
    bad_usage("a request of {} rows cannot be cut into groups of {}", images.size(0), request.group);
  Execution form = execution_of(*this, request.alone);
  if (crew() != nullptr) impl.check_crew(execution());
  try {
    return Run(impl, images, request, form).finish();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    bad_input("{}: fails while running: {}", impl.info.path, impl.executor->explain(e));
  }
}

Execution execution_of(Network& network, bool alone) {
  if (!alone) return network.execution();
  return {std::max<std::int64_t>(1, network.info().fixed_batch), false};
}

const Execution& Network::execution() {
  if (impl_->execution.micro_batch != 0) return impl_->execution;
  // Measured by one process for all of them.
  std::string chosen = made_by_first([&] {
    Execution best = tuned_execution(*impl_);
    return fmt::format("{} {} {}", best.micro_batch, int{best.channels_last}, int{best.fused});
  });
  std::istringstream in(chosen);
  Execution& execution = impl_->execution;
  in >> execution.micro_batch >> execution.channels_last >> execution.fused;
  return execution;
}

}  // namespace galvani
