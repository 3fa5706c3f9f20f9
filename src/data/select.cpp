// Which rows a selector leaves.
#include <algorithm>
#include <charconv>
#include <map>

#include "galvani/base/error.h"
#include "galvani/base/rng.h"
#include "galvani/base/text.h"
#include "galvani/data/dataset.h"
#include "galvani/data/spec.h"

namespace galvani {
namespace {

using Rows = std::vector<std::int64_t>;

// As Python's x[begin:end:step].
Rows slice(const Rows& rows, const Bracket& selector) {
  auto n = static_cast<std::int64_t>(rows.size());
  bool forward = selector.step > 0;
  std::int64_t lowest = forward ? 0 : -1;
  std::int64_t highest = forward ? n : n - 1;
  auto bound = [&](const std::optional<Amount>& amount, std::int64_t fallback) {
    return amount ? std::clamp(amount->of(n), lowest, highest) : fallback;
  };
  std::int64_t begin = bound(selector.begin, forward ? 0 : n - 1);
  std::int64_t end = bound(selector.end, forward ? n : -1);
  Rows result;
  // The distance left is compared, not a position that a huge step could overflow.
  while (forward ? begin < end : begin > end) {
    result.push_back(rows[static_cast<std::size_t>(begin)]);
    bool last = forward ? end - begin <= selector.step : begin - end <= -selector.step;
    if (last) break;
    begin += selector.step;
  }
  return result;
}

// `count` of `rows` in their own order.
Rows draw(const Rows& rows, std::int64_t count, Rng rng) {
  Rows positions = rng.sample(static_cast<std::int64_t>(rows.size()), count);
  std::sort(positions.begin(), positions.end());
  Rows result;
  for (std::int64_t position : positions) result.push_back(rows[static_cast<std::size_t>(position)]);
  return result;
}

std::int64_t class_index(const std::string& wanted, const std::vector<std::string>& class_names, std::int64_t classes,
                         const std::string& name) {
  auto it = std::find(class_names.begin(), class_names.end(), wanted);
  if (it != class_names.end()) return it - class_names.begin();
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  bool is_number = error == std::errc{} && end == wanted.data() + wanted.size();
  if (is_number && number >= 0 && number < classes) return number;
  std::string known;
  for (const std::string& other : class_names) known += (known.empty() ? "" : ", ") + other;
  if (known.empty()) known = fmt::format("0 to {}", classes - 1);
  bad_usage("data '{}': there is no class '{}'; classes are {}", name, printable(wanted), printable(known, 300));
}

class RowSelection {
 public:
  RowSelection(at::Tensor labels, const std::vector<std::string>& class_names, const std::string& name)
      : labels_(std::move(labels)), label_(labels_.data_ptr<std::int64_t>()), class_names_(class_names), name_(name) {
    rows_.reserve(static_cast<std::size_t>(labels_.size(0)));
    for (std::int64_t i = 0; i < labels_.size(0); ++i) {
      rows_.push_back(i);
      classes_ = std::max(classes_, label_[i] + 1);
    }
    classes_ = std::max(classes_, static_cast<std::int64_t>(class_names.size()));
  }

  void apply(const Bracket& selector) {
    switch (selector.kind) {
      case Bracket::Kind::slice:
        rows_ = slice(rows_, selector);
        break;
      case Bracket::Kind::item:
        rows_ = {item(selector)};
        break;
      case Bracket::Kind::sample:
        rows_ = draw(rows_, checked_count(selector, rows_.size(), ""), Rng(selector.seed));
        break;
      case Bracket::Kind::classes:
        keep_classes(selector);
        break;
      case Bracket::Kind::per_class:
        draw_per_class(selector);
        break;
      case Bracket::Kind::length:  // says how rows are read, not which
        break;
    }
    if (rows_.empty()) bad_usage("data '{}': {} leaves no images", name_, selector.str());
  }

  Rows take() { return std::move(rows_); }

 private:
  std::int64_t item(const Bracket& selector) const {
    auto n = static_cast<std::int64_t>(rows_.size());
    std::int64_t position = selector.begin->of(n);
    if (position < 0 || position >= n)
      bad_usage("data '{}': there is no image {} among {}", name_, selector.begin->str(), n);
    return rows_[static_cast<std::size_t>(position)];
  }

  std::int64_t checked_count(const Bracket& selector, std::size_t have, const std::string& of_class) const {
    std::int64_t count = selector.count.of(static_cast<std::int64_t>(have));
    if (count > static_cast<std::int64_t>(have))
      bad_usage("data '{}': {} asks for {}, but there are only {}{}", name_, selector.str(), counted(count, "input"),
                have, of_class);
    return count;
  }

  void keep_classes(const Bracket& selector) {
    std::vector<std::int64_t> wanted;
    for (const std::string& name : selector.classes) wanted.push_back(class_index(name, class_names_, classes_, name_));
    Rows kept;
    for (std::int64_t row : rows_) {
      if (std::find(wanted.begin(), wanted.end(), label_[row]) != wanted.end()) kept.push_back(row);
    }
    rows_ = std::move(kept);
  }

  void draw_per_class(const Bracket& selector) {
    std::map<std::int64_t, Rows> by_class;
    for (std::int64_t row : rows_) {
      if (label_[row] == Dataset::kUnlabelled)
        bad_usage("data '{}': {} needs labels, but image {} has none", name_, selector.str(), row);
      by_class[label_[row]].push_back(row);
    }
    Rows kept;
    for (const auto& [label, rows] : by_class) {
      std::int64_t count = checked_count(selector, rows.size(), fmt::format(" of class {}", label));
      Rows drawn = draw(rows, count, Rng(selector.seed).derive(static_cast<std::uint64_t>(label)));
      kept.insert(kept.end(), drawn.begin(), drawn.end());
    }
    std::sort(kept.begin(), kept.end());
    rows_ = std::move(kept);
  }

  at::Tensor labels_;
  const std::int64_t* label_;
  const std::vector<std::string>& class_names_;
  const std::string& name_;
  std::int64_t classes_ = 0;
  Rows rows_;
};

}  // namespace

std::vector<std::int64_t> select_rows(const std::vector<Bracket>& selectors, const at::Tensor& labels,
                                      const std::vector<std::string>& class_names, const std::string& name) {
  RowSelection selection(labels, class_names, name);
  for (const Bracket& selector : selectors) selection.apply(selector);
  return selection.take();
}

}  // namespace galvani
