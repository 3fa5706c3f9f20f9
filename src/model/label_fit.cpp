#include "galvani/model/label_fit.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr std::int64_t kFewInputs = 30;  // say nothing
constexpr double kShiftGain = 0.25;      // of what is wrong a shift has to mend so much: there are only two
constexpr double kOrderGain = 0.5;       // and an order so much
constexpr double kAsGood = 0.1;          // a shift is simpler than an order that is right a little more often

double share(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
}

// Far more than as they are, and than one class for all would be.
bool mends(std::int64_t right, const at::Tensor& confusion, double gain) {
  auto n = confusion.sum().item<std::int64_t>();
  auto as_is = confusion.diagonal().sum().item<std::int64_t>();
  double base = std::max(share(as_is, n), share(confusion.sum(1).max().item<std::int64_t>(), n));
  return n > 0 && share(right, n) > base + (1 - base) * gain &&
         wilson_interval(right, n).low > wilson_interval(as_is, n).high;
}

std::optional<LabelFit> by_shift(const at::Tensor& confusion) {
  std::optional<LabelFit> best;
  auto n = confusion.sum().item<std::int64_t>();
  for (std::int64_t shift : {1, -1}) {
    // The label that would leave the classes.
    if (confusion[shift > 0 ? confusion.size(0) - 1 : 0].sum().item<std::int64_t>() > 0) continue;
    auto right = confusion.diagonal(shift).sum().item<std::int64_t>();
    if (!mends(right, confusion, kShiftGain)) continue;
    if (best && best->accuracy >= share(right, n)) continue;
    best = LabelFit{shift, {}, share(confusion.diagonal().sum().item<std::int64_t>(), n), share(right, n)};
  }
  return best;
}

// Pairs of a label and a class, those that most inputs have first, each of both once.
std::vector<std::int64_t> most_frequent_pairs(const at::Tensor& confusion) {
  std::int64_t classes = confusion.size(0);
  at::Tensor cells = confusion.nonzero();
  auto at = cells.accessor<std::int64_t, 2>();
  auto count = confusion.accessor<std::int64_t, 2>();
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> pairs;
  for (std::int64_t i = 0; i < cells.size(0); ++i) pairs.emplace_back(-count[at[i][0]][at[i][1]], at[i][0], at[i][1]);
  std::sort(pairs.begin(), pairs.end());
  std::vector<std::int64_t> class_of(static_cast<std::size_t>(classes), -1);
  std::vector<bool> taken(static_cast<std::size_t>(classes), false);
  for (const auto& [unused, label, predicted] : pairs) {
    auto l = static_cast<std::size_t>(label), p = static_cast<std::size_t>(predicted);
    if (class_of[l] >= 0 || taken[p]) continue;
    class_of[l] = predicted;
    taken[p] = true;
  }
  return class_of;
}

std::optional<LabelFit> by_order(const at::Tensor& seen, const at::Tensor& held_out) {
  LabelFit fit;
  fit.class_of = most_frequent_pairs(seen);
  auto count = held_out.accessor<std::int64_t, 2>();
  std::int64_t right = 0;
  for (std::size_t l = 0; l < fit.class_of.size(); ++l) {
    if (fit.class_of[l] >= 0) right += count[static_cast<std::int64_t>(l)][fit.class_of[l]];
  }
  if (!mends(right, held_out, kOrderGain)) return std::nullopt;
  auto n = held_out.sum().item<std::int64_t>();
  fit.as_they_are = share(held_out.diagonal().sum().item<std::int64_t>(), n);
  fit.accuracy = share(right, n);
  return fit;
}

std::string order_text(const LabelFit& fit, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 6;
  auto name = [&](std::size_t label) { return label < names.size() ? names[label] : std::to_string(label); };
  std::string pairs;
  std::size_t moved = 0, known = 0;
  std::vector<std::string> in_order(fit.class_of.size());
  for (std::size_t l = 0; l < fit.class_of.size(); ++l) {
    if (fit.class_of[l] < 0) continue;
    auto to = static_cast<std::size_t>(fit.class_of[l]);
    ++known;
    in_order[to] = name(l);
    if (to == l || ++moved > kShown) continue;
    pairs += fmt::format("{}{} → {}", pairs.empty() ? "" : ", ", printable(name(l), 30), to);
  }
  if (moved > kShown) pairs += fmt::format(" and {} more", moved - kShown);
  std::string text = fmt::format(
      "{:.2f}% on a half of the inputs if labels mean the classes that the other half shows "
      "({}): the order of the classes is another",
      fit.accuracy * 100, pairs);
  constexpr std::size_t kMostNames = 100;
  bool comma = std::any_of(in_order.begin(), in_order.end(),
                           [](const std::string& s) { return s.find(',') != std::string::npos; });
  if (known < fit.class_of.size() || known > kMostNames || comma)
    return text + (names.empty()
                       ? "; --classes takes a file with a line for each class of the network, the label that means it"
                       : "; name the network's classes in its order with --classes, and labels are matched by name");
  return text + fmt::format("; --classes {} names them in the network's order",
                            shell_word(fmt::format("{}", fmt::join(in_order, ","))));
}

}  // namespace

std::optional<LabelFit> fit_labels(const at::Tensor& seen, const at::Tensor& held_out) {
  at::Tensor all = seen + held_out;
  if (all.size(0) < 2 || all.sum().item<std::int64_t>() < kFewInputs) return std::nullopt;
  std::optional<LabelFit> shift = by_shift(all);
  std::optional<LabelFit> order = by_order(seen, held_out);
  if (shift && (!order || shift->accuracy + kAsGood >= order->accuracy)) return shift;
  return order;
}

std::optional<LabelFit> fit_labels(const at::Tensor& labels, const at::Tensor& verdicts, std::int64_t classes) {
  at::Tensor half = held_out_rows(0, labels.size(0));
  at::Tensor cells = (half * classes + labels) * (classes + 1) + (verdicts - kNotANumber);
  at::Tensor counts = at::bincount(cells, {}, 2 * classes * (classes + 1)).view({2, classes, classes + 1});
  return fit_labels(counts[0].narrow(1, 1, classes), counts[1].narrow(1, 1, classes));
}

at::Tensor held_out_rows(std::int64_t first, std::int64_t count) {
  // A hash (splitmix64): rows that repeat with any period are spread over both parts.
  auto held_out = [](std::uint64_t row) {
    row += 0x9E3779B97F4A7C15U;
    row = (row ^ (row >> 30)) * 0xBF58476D1CE4E5B9U;
    row = (row ^ (row >> 27)) * 0x94D049BB133111EBU;
    return static_cast<std::int64_t>((row ^ (row >> 31)) & 1);
  };
  at::Tensor result = at::empty({count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i)
    result.data_ptr<std::int64_t>()[i] = held_out(static_cast<std::uint64_t>(first + i));
  return result;
}

std::string remedy_text(const LabelFit& fit, const std::vector<std::string>& names) {
  if (fit.shift == 0) return order_text(fit, names);
  return fmt::format(
      "{:.2f}% if the network's class is the label {} 1 ({}); --label-shift {} takes it so", fit.accuracy * 100,
      fit.shift > 0 ? "+" : "-",
      fit.shift > 0 ? "its class 0 may be a background that the labels leave out" : "the labels may count from 1",
      fit.shift);
}

}  // namespace galvani
