#include "galvani/attack/attack.h"

#include <ATen/ATen.h>

#include <cmath>

#include "attack/builtin.h"
#include "galvani/attack/search.h"
#include "galvani/base/error.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

void check_classes(const Network& network, const at::Tensor& classes, std::int64_t n, const char* what) {
  if (classes.dim() != 1 || classes.size(0) != n || classes.scalar_type() != at::kLong || !classes.is_contiguous())
    bad_usage("an attack on {} inputs takes as many {}s, 64-bit integers", n, what);
  if (n == 0) return;
  for (std::int64_t found : {classes.min().item<std::int64_t>(), classes.max().item<std::int64_t>()}) {
    if (found < 0 || found >= network.info().classes)
      bad_input("{}: has no class {}, which is the {} of an input; it knows {} (0 to {})", network.info().path, found,
                what, network.info().classes, network.info().classes - 1);
  }
}

void check_task(const Network& network, const AttackTask& task) {
  at::ScalarType type = task.inputs.scalar_type();
  if (type != at::kByte && type != at::kShort)
    bad_usage("attacks work on what files hold: 8-bit images or 16-bit sounds");
  check_fits(network, task.inputs, "the inputs to attack");
  std::int64_t n = task.inputs.size(0);
  check_classes(network, task.labels, n, "label");
  const Question& question = network.info().question;
  if (question.by_reference() != task.references.defined())
    bad_usage("{}: its task is {}, which takes {}", network.info().path, to_string(question.task),
              question.by_reference() ? "a reference for each input" : "no references");
  if (task.streams.size() != static_cast<std::size_t>(n)) bad_usage("an attack takes a random stream for each input");
  if (!task.targets.defined()) return;
  check_classes(network, task.targets, n, "target");
  if (task.targets.eq(task.labels).any().item<bool>())
    bad_usage("an input's target must differ from its label; leave out those that have it already");
}

// Sizes of the change of each row.
template <class T>
void measure_rows(const at::Tensor& before, const at::Tensor& after, Attacked& result) {
  std::int64_t n = before.size(0);
  if (n == 0) return;
  std::int64_t channels = before.size(1);
  std::int64_t pixels = before[0].numel() / channels;
  double full = sizeof(T) == 1 ? 255 : 32768;
  const T* from = before.data_ptr<T>();
  const T* to = after.data_ptr<T>();
  for (std::int64_t row = 0; row < n; ++row, from += channels * pixels, to += channels * pixels) {
    double square = 0;
    int largest = 0;
    std::int64_t changed = 0;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      bool differs = false;
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        int change = static_cast<int>(to[channel * pixels + pixel]) - from[channel * pixels + pixel];
        differs = differs || change != 0;
        largest = std::max(largest, std::abs(change));
        square += static_cast<double>(change) * change;
      }
      changed += differs ? 1 : 0;
    }
    result.l0.data_ptr<double>()[row] = static_cast<double>(changed) / static_cast<double>(pixels);
    result.l2.data_ptr<double>()[row] = std::sqrt(square) / full;
    result.linf.data_ptr<double>()[row] = largest / full;
  }
}

}  // namespace

const char* to_string(Norm norm) {
  return norm == Norm::linf ? "linf" : norm == Norm::l2 ? "l2" : "l0";
}

Attack::Attack(Norm norm, double epsilon) : bounded_(true), epsilon_(epsilon), norm_(norm) {
  if (norm == Norm::linf && epsilon > 1)
    bad_usage("eps is a share of the full scale, at most 1 in the norm linf; {0} of 255 grey levels is {0}/255",
              epsilon);
}

Attacked Attack::operator()(Network& network, const AttackTask& task) const {
  AttackTask own = task;
  own.inputs = task.inputs.contiguous();
  check_task(network, own);
  std::int64_t n = own.inputs.size(0);
  Attacked result;
  result.inputs = own.inputs.clone();
  result.success = at::zeros({n}, at::kBool);
  result.success_float = at::zeros({n}, at::kBool);
  result.forward = at::ones({n}, at::kLong);
  result.backward = at::zeros({n}, at::kLong);
  for (at::Tensor* size : {&result.l0, &result.l2, &result.linf}) *size = at::zeros({n}, at::kDouble);
  Predictions before = predict(network, own.inputs, own.references);
  result.logits = before.logits;
  result.predicted = before.labels;
  result.right = before.labels.eq(own.labels);
  at::Tensor right = result.right.nonzero().flatten();
  if (right.numel() == 0) return result;
  Search search(network, *this, own, right, before.logits);
  if (!bounded_ || search.radius() > 0) {
    run(search);
    search.settle();
  }
  std::vector<std::int64_t> changed;
  for (std::int64_t i = 0; i < right.numel(); ++i) {
    std::int64_t row = right.data_ptr<std::int64_t>()[i];
    auto r = static_cast<std::size_t>(i);
    result.forward.data_ptr<std::int64_t>()[row] += search.forward_[r];
    result.backward.data_ptr<std::int64_t>()[row] += search.backward_[r];
    result.success_float.data_ptr<bool>()[row] = search.fooled_[r] != 0;
    if (search.kept_[r] != 0) changed.push_back(i);
  }
  if (changed.empty()) return result;
  at::Tensor found = at::tensor(changed, at::kLong);
  at::Tensor rows = right.index_select(0, found);
  at::Tensor logits = search.saved_logits_.index_select(0, found);
  result.inputs.index_copy_(0, rows, search.saved_.index_select(0, found).to(own.inputs.scalar_type()));
  result.logits.index_copy_(0, rows, logits);
  result.predicted.index_copy_(0, rows, verdicts(logits));
  result.success.index_fill_(0, rows, true);
  if (own.inputs.scalar_type() == at::kByte) {
    measure_rows<std::uint8_t>(own.inputs, result.inputs, result);
  } else {
    measure_rows<std::int16_t>(own.inputs, result.inputs, result);
  }
  return result;
}

std::unique_ptr<Attack> make_attack(const Spec& spec) {
  std::unique_ptr<Attack> attack = attacks().create(spec);
  attack->id_ = spec.name;
  attack->spec_ = attacks().options(spec).str();
  return attack;
}

}  // namespace galvani
