// Forward and backward passes over any number of inputs, cut into micro-batches that worker threads take.
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/script.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "galvani/base/parallel.h"
#include "model/graph_tools.h"
#include "model/limits.h"
#include "model/network_impl.h"

namespace galvani {
namespace {

std::vector<std::int64_t> with_batch(std::int64_t n, std::vector<std::int64_t> shape) {
  shape.insert(shape.begin(), n);
  return shape;
}

// rows [first, first + count) of `all`, followed by copies of the last one up to `size`.
at::Tensor padded_rows(const at::Tensor& all, std::int64_t first, std::int64_t count, std::int64_t size) {
  at::Tensor rows = all.narrow(0, first, count);
  if (count == size) return rows;
  std::vector<std::int64_t> repeat(static_cast<std::size_t>(all.dim()), -1);
  repeat[0] = size - count;
  return at::cat({rows, rows.narrow(0, count - 1, 1).expand(repeat)});
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

at::Tensor as_logits(const at::Tensor& output) {
  return output.dim() == 2 ? output : output.flatten(1);
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

// One request in progress: the results that workers fill in, row range by row range.
class Run {
 public:
  Run(Network::Impl& impl, const at::Tensor& images, const Request& request, const Execution& form)
      : impl_(impl), images_(images), request_(request), form_(form), n_(images.size(0)) {
    check_masks(request.masks, impl.taps, n_);
    std::vector<int> masked;
    for (const Mask& mask : request.masks) masked.push_back(mask.tap);
    Executor::Form form_of_taps = request.objective                  ? Executor::Form::whole
                                  : request.form == TapForm::neurons ? Executor::Form::means
                                                                     : Executor::Form::whole_final;
    means_ = form_of_taps == Executor::Form::means;
    plan_ = impl.executor->plan({request.taps, masked, form_of_taps, request.layer_inputs, form.fused});
    outputs_.logits = at::empty({n_, impl.info.classes});
    for (int tap : request.taps) {
      const Tap& t = impl.taps.at(static_cast<std::size_t>(tap));
      auto full = with_batch(n_, t.shape);
      outputs_.taps.push_back(request.form == TapForm::full ? at::empty(full) : at::empty({n_, t.neurons()}));
      if (request.objective && request.tap_gradients) outputs_.tap_gradients.push_back(at::zeros(full));
    }
    if (!request.objective) return;
    outputs_.objective = at::empty({n_});
    if (request.input_gradient) outputs_.input_gradient = at::empty(with_batch(n_, impl.info.input));
    if (request.mask_gradients) {
      for (const Mask& mask : request.masks)
        outputs_.mask_gradients.push_back(at::zeros({n_, impl.taps[static_cast<std::size_t>(mask.tap)].neurons()}));
    }
  }

  Outputs finish() {
    inputs_of_piece_.resize(static_cast<std::size_t>((n_ + form_.micro_batch - 1) / form_.micro_batch));
    std::int64_t pieces = (n_ + form_.micro_batch - 1) / form_.micro_batch;
    workers().run(pieces, [this](std::int64_t piece, int) {
      std::int64_t first = piece * form_.micro_batch;
      std::int64_t count = std::min(form_.micro_batch, n_ - first);
      if (request_.objective) {
        differentiate(first, count);
      } else {
        c10::InferenceMode inference;
        forward(first, count);
      }
    });
    for (std::size_t i = 0; i < request_.layer_inputs.size(); ++i) {
      std::vector<at::Tensor> pieces_of_layer;
      for (const auto& piece : inputs_of_piece_) pieces_of_layer.push_back(piece[i]);
      if (!pieces_of_layer.empty()) outputs_.layer_inputs.push_back(at::cat(pieces_of_layer));
    }
    return std::move(outputs_);
  }

 private:
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
      result.push_back(spread_over(factors[i], impl_.taps[static_cast<std::size_t>(request_.masks[i].tap)]));
    return result;
  }

  // Writes the rows of a micro-batch's result that are not padding.
  static void put(at::Tensor& all, const at::Tensor& rows, std::int64_t first, std::int64_t count) {
    all.narrow(0, first, count).copy_(rows.narrow(0, 0, count));
  }

  // Runs the plan. Shapes may depend on the data (Unique, NonZero): what differs from the probe must not be spread over
  // the rows of a result.
  std::vector<at::Tensor> run_plan(const at::Tensor& x, const std::vector<at::Tensor>& masks) const {
    std::vector<at::Tensor> values = plan_->run(x, masks);
    auto fits = [&](const at::Tensor& value, std::int64_t units) {
      return value.dim() > 0 && value.size(0) == form_.micro_batch && value.numel() == form_.micro_batch * units;
    };
    bool fit = fits(values[0], impl_.info.classes);
    for (std::size_t i = 0; i < request_.taps.size() && fit; ++i) {
      const Tap& tap = impl_.taps[static_cast<std::size_t>(request_.taps[i])];
      fit = fits(values[i + 1], means_ ? tap.neurons() : tap.units());
    }
    if (!fit) bad_input("{}: the shape of its results depends on the images, which is not supported", impl_.info.path);
    return values;
  }

  void store_values(const std::vector<at::Tensor>& values, std::int64_t first, std::int64_t count) {
    put(outputs_.logits, as_logits(values[0]), first, count);
    for (std::size_t i = 0; i < request_.taps.size(); ++i) {
      const Tap& tap = impl_.taps[static_cast<std::size_t>(request_.taps[i])];
      bool reduce = request_.objective && request_.form == TapForm::neurons;
      put(outputs_.taps[i], reduce ? neuron_means(values[i + 1], tap) : values[i + 1], first, count);
    }
  }

  void forward(std::int64_t first, std::int64_t count) {
    std::vector<at::Tensor> values = run_plan(input(first, count), spread(mask_rows(first, count)));
    store_values(values, first, count);
    auto& inputs = inputs_of_piece_[static_cast<std::size_t>(first / form_.micro_batch)];
    for (std::size_t i = 1 + request_.taps.size(); i < values.size(); ++i)
      inputs.push_back(values[i].narrow(0, 0, count).contiguous());
  }

  void differentiate(std::int64_t first, std::int64_t count) {
    at::AutoGradMode enable(true);
    at::Tensor x = input(first, count).requires_grad_(true);
    std::vector<at::Tensor> masks = mask_rows(first, count);
    if (request_.mask_gradients) {
      for (at::Tensor& mask : masks) {
        if (mask.dim() == 1) mask = mask.expand({form_.micro_batch, mask.size(0)});
        mask = mask.clone().requires_grad_(true);
      }
    }
    std::vector<at::Tensor> values = run_plan(x, spread(masks));
    Pass pass{as_logits(values[0]), {values.begin() + 1, values.end()}, first, count};
    at::Tensor objective = request_.objective(pass);
    if (objective.dim() != 1 || objective.size(0) != form_.micro_batch)
      fail(ErrorCode::internal, "an objective must give one number per input");
    std::vector<at::Tensor> wanted;
    if (request_.input_gradient) wanted.push_back(x);
    if (request_.tap_gradients) wanted.insert(wanted.end(), pass.taps.begin(), pass.taps.end());
    if (request_.mask_gradients) wanted.insert(wanted.end(), masks.begin(), masks.end());
    std::vector<at::Tensor> gradients(wanted.size());
    if (!wanted.empty() && objective.requires_grad()) {
      gradients = torch::autograd::grad({objective.narrow(0, 0, count).sum()}, wanted, {}, c10::nullopt,
                                        /*create_graph=*/false, /*allow_unused=*/true);
    }
    at::NoGradGuard no_grad;
    for (at::Tensor& value : values) value = value.detach();
    store_values(values, first, count);
    put(outputs_.objective, objective.detach(), first, count);
    std::size_t next = 0;
    if (request_.input_gradient) {
      at::Tensor gradient = gradients[next].defined() ? gradients[next] : at::zeros_like(x);
      put(outputs_.input_gradient, impl_.card.preprocess.pull_back(gradient), first, count);
      ++next;
    }
    for (at::Tensor& all : outputs_.tap_gradients) {
      if (gradients[next].defined()) put(all, gradients[next], first, count);
      ++next;
    }
    for (at::Tensor& all : outputs_.mask_gradients) {
      if (gradients[next].defined()) put(all, gradients[next], first, count);
      ++next;
    }
  }

  Network::Impl& impl_;
  const at::Tensor& images_;
  const Request& request_;
  Execution form_;
  std::int64_t n_;
  std::shared_ptr<const Plan> plan_;
  bool means_ = false;  // the plan gives taps in that form
  Outputs outputs_;
  std::vector<std::vector<at::Tensor>> inputs_of_piece_;  // of each micro-batch, the layer inputs asked for
};

// Image sizes that models are commonly made for, tried on a TorchScript file that does not state its own.
const std::vector<std::int64_t> kCommonSides = {224, 32, 28, 299, 64, 96};

// Larger images than any camera's are a mistake in the file.
void check_input_size(const std::vector<std::int64_t>& shape, std::int64_t batch, const std::string& label) {
  constexpr std::int64_t kLongestSide = 65536;
  std::int64_t values = 1;
  for (std::int64_t n : shape) {
    if (n < 1 || n > kLongestSide || (values *= n) > kMostInputValues)
      bad_input("{}: its input of {} is too large", label, fmt::format("{}", fmt::join(shape, "x")));
  }
  std::int64_t most = std::min(kLargestBatch, kMostInputValues / values);
  if (batch > most)
    bad_input(
        "{}: takes batches of {} only, more than the {} supported for its input; export it with an open batch size",
        label, batch, most);
}

std::vector<std::vector<std::int64_t>> candidate_inputs(const Network::Impl& impl,
                                                        const std::vector<std::int64_t>& data) {
  if (!impl.card.input.empty()) return {impl.card.input};
  std::vector<std::int64_t> stated = impl.info.input;
  bool complete = stated.size() == 3 && *std::min_element(stated.begin(), stated.end()) > 0;
  if (complete && impl.card.preprocess.channels_last) stated = {stated[2], stated[0], stated[1]};
  if (complete) return {stated};
  std::vector<std::vector<std::int64_t>> result;
  if (data.size() == 3) result.push_back(data);
  for (std::int64_t channels : {3, 1}) {
    for (std::int64_t side : kCommonSides) result.push_back({channels, side, side});
  }
  return result;
}

}  // namespace

at::Tensor probe_images(std::int64_t size, const std::vector<std::int64_t>& shape) {
  at::Tensor period = at::arange(256, at::kLong).mul_(7919).remainder_(256).to(at::kByte);
  std::int64_t values = size * shape[0] * shape[1] * shape[2];
  return period.repeat({values / 256 + 1}).narrow(0, 0, values).view(with_batch(size, shape));
}

at::Tensor Network::Impl::prepare(const at::Tensor& images, const Execution& form) const {
  at::Tensor input = card.preprocess.apply(images);
  return form.channels_last ? input.contiguous(at::MemoryFormat::ChannelsLast) : input;
}

namespace {

// Whether the rows of `together` are what single images gave.
bool same_rows(const at::Tensor& together, const std::vector<at::Tensor>& alone, double tolerance) {
  auto n = static_cast<std::int64_t>(alone.size());
  if (together.dim() != alone[0].dim() || together.dim() == 0 || together.size(0) != n * alone[0].size(0)) return false;
  at::Tensor wanted = at::cat(alone);
  if (wanted.sizes() != together.sizes() || wanted.numel() == 0) return false;
  double largest = wanted.is_floating_point() ? wanted.abs().max().item<double>() : 0;
  return at::allclose(together, wanted, 0, tolerance * largest, /*equal_nan=*/true);
}

}  // namespace

bool Network::Impl::free_batch() {
  constexpr std::int64_t kImages = 3;
  constexpr double kTolerance = 1e-5;  // of the largest value
  std::vector<at::Tensor> images;
  for (std::int64_t i = 0; i < kImages; ++i) images.push_back(probe_images(1, info.input) * (2 * i + 1) + 31 * i);
  at::Tensor input = prepare(at::cat(images).to(at::kByte), {});
  std::unique_ptr<Executor> free = executor->rebatched(input.narrow(0, 0, 2));
  if (free == nullptr || free->taps().size() != executor->taps().size()) return false;
  std::vector<int> every;
  for (std::size_t i = 0; i < free->taps().size(); ++i) {
    if (free->taps()[i].name != executor->taps()[i].name) return false;
    every.push_back(static_cast<int>(i));
  }
  auto plan_of = [&](Executor& of) { return of.plan({every, {}, Executor::Form::whole, {}, false}); };
  std::vector<std::vector<at::Tensor>> alone(every.size() + 1);
  for (std::int64_t i = 0; i < kImages; ++i) {
    std::vector<at::Tensor> values = plan_of(*executor)->run(input.narrow(0, i, 1), {});
    for (std::size_t v = 0; v < values.size(); ++v) alone[v].push_back(std::move(values[v]));
  }
  try {
    std::vector<at::Tensor> together = plan_of(*free)->run(input, {});
    for (std::size_t v = 0; v < together.size(); ++v) {
      bool observable = v == 0 || (alone[v][0].dim() >= 2 && alone[v][0].size(0) == 1);
      if (observable && !same_rows(together[v], alone[v], kTolerance)) return false;
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
  log::debug("{}: was made for single images; takes any number", info.path);
  executor = std::move(free);
  return true;
}

void Network::Impl::probe(const std::vector<std::int64_t>& data_shape) {
  std::vector<int> every;
  for (std::size_t i = 0; i < executor->taps().size(); ++i) every.push_back(static_cast<int>(i));
  std::shared_ptr<const Plan> plan = executor->plan({every, {}, Executor::Form::whole, {}, false});
  std::vector<std::vector<std::int64_t>> candidates = candidate_inputs(*this, data_shape);
  std::string first_error;
  std::vector<at::Tensor> values;
  c10::InferenceMode inference;
  at::Tensor noise;
  std::int64_t batch = info.fixed_batch > 0 ? info.fixed_batch : 2;
  auto attempt = [&](const std::vector<std::int64_t>& shape, std::int64_t size) {
    try {
      check_input_size(shape, size, info.path);
      check(card.preprocess, shape[0], info.path);
      noise = probe_images(size, shape);
      values = plan->run(prepare(noise, {}), {});
      return true;
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      if (first_error.empty()) first_error = executor->explain(e);
      return false;
    }
  };
  std::vector<std::int64_t> found;
  for (const auto& shape : candidates) {
    if (attempt(shape, batch) || (info.fixed_batch == 0 && attempt(shape, 1))) {
      found = shape;
      break;
    }
  }
  if (found.empty())
    bad_input("{}: cannot be run on an image of {}: {}", info.path, fmt::format("{}", fmt::join(candidates[0], "x")),
              first_error);
  if (candidates.size() > 1 && found != data_shape)
    info.notes.push_back(fmt::format("does not state its input; {} works (--input says otherwise)",
                                     fmt::format("{}", fmt::join(found, "x"))));
  info.input = found;
  info.softmax = executor->ends_in_softmax();
  batch = noise.size(0);
  at::Tensor logits = values[0];
  if (logits.dim() < 2 || logits.size(0) != batch || logits.numel() / batch != logits.size(1) ||
      !logits.is_floating_point())
    bad_input("{}: gives an output of shape {} for {} images, not one score per class", info.path,
              fmt::format("{}", fmt::join(logits.sizes(), "x")), batch);
  info.classes = logits.size(1);
  if (!card.class_names.empty() && static_cast<std::int64_t>(card.class_names.size()) != info.classes)
    bad_input("{}: names {} classes but has {} outputs", info.path, card.class_names.size(), info.classes);

  // A file that states a batch size, or one that only took a single image, may still take any: try.
  std::vector<at::Tensor> first_values = values;
  at::Tensor first_noise = noise;
  std::int64_t other = batch == 1 ? 2 : 1;
  bool any_batch = false;
  if (attempt(found, other) && values[0].sizes().size() == logits.sizes().size() && values[0].size(0) == other) {
    at::Tensor one = first_noise.narrow(0, 0, 1);
    at::Tensor alone = other == 1 ? values[0] : plan->run(prepare(one, {}), {})[0];
    at::Tensor among = (other == 1 ? logits : values[0]).narrow(0, 0, 1);
    any_batch = at::allclose(alone, among, 1e-3, 1e-4, /*equal_nan=*/true);
  }
  if (!any_batch && batch == 1) any_batch = free_batch();
  info.fixed_batch = any_batch ? 0 : batch;
  std::int64_t asked = std::max(execution.micro_batch, wanted_micro_batch);
  if (!any_batch && asked != 0 && asked != batch) bad_usage("{}: takes batches of {} only", info.path, batch);

  std::vector<std::size_t> observable;
  for (std::size_t i = 0; i < executor->taps().size(); ++i) {
    at::IntArrayRef sizes = first_values[i + 1].sizes();
    // A product of weights alone has no value per image: nothing to observe.
    if (sizes.size() < 2 || sizes[0] != batch) continue;
    Tap tap = executor->taps()[i];
    tap.shape = sizes.slice(1).vec();
    auto rank = static_cast<std::int64_t>(tap.shape.size());
    if (tap.axis == Executor::kUnknownAxis) tap.axis = rank == 3 ? 0 : -1;
    if (tap.axis < 0 || tap.axis >= rank) tap.axis = rank - 1;
    if (rank == 1) tap.axis = 0;
    taps.push_back(std::move(tap));
    observable.push_back(i);
  }
  executor->keep_taps(observable, taps);
}

Outputs Network::run(const at::Tensor& images, const Request& request) {
  Impl& impl = *impl_;
  bool pixels = images.scalar_type() == at::kByte || images.scalar_type() == at::kFloat;
  if (!pixels) bad_usage("images must be bytes or floats");
  check_fits(*this, images, "the request");
  Execution form = request.alone ? Execution{std::max<std::int64_t>(1, impl.info.fixed_batch), false} : execution();
  try {
    return Run(impl, images, request, form).finish();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    bad_input("{}: fails while running: {}", impl.info.path, impl.executor->explain(e));
  }
}

const Execution& Network::execution() {
  if (impl_->execution.micro_batch == 0) impl_->execution = tuned_execution(*impl_);
  return impl_->execution;
}

}  // namespace galvani
