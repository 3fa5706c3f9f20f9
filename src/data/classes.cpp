#include "classes.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "notices.h"

namespace galvani {

// Written by scripts/embed.cmake: what src/data/class_lists holds.
std::string_view class_list(std::string_view name);

namespace {

using Names = std::vector<std::string>;

struct ClassList {
  const char* name;
  const char* file;
  std::int64_t classes;
  bool background = false;  // class 0 stands before the list
};
constexpr ClassList kClassLists[] = {
    {"ImageNet", "imagenet.txt", 1000}, {"ImageNet", "imagenet.txt", 1001, true},
    {"CIFAR-10", "cifar10.txt", 10},    {"CIFAR-100", "cifar100.txt", 100},
    {"MNIST", "mnist.txt", 10},         {"Fashion-MNIST", "fashion-mnist.txt", 10},
};

Names names_of(const ClassList& list) {
  Names names;
  if (list.background) names.emplace_back("background");
  std::string_view text = class_list(list.file);
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

// Letters and digits in lower case; bytes of other alphabets stay.
std::string plain(std::string_view name) {
  std::string result;
  for (char c : name) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0) result += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
  }
  return result;
}

// What a model's classes may be called.
class ClassIndex {
 public:
  explicit ClassIndex(const Names& names) : names_(names) {
    for (std::size_t i = 0; i < names.size(); ++i) add(names[i], static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string_view rest = names[i];
      if (rest.find(',') == std::string_view::npos) continue;
      while (!rest.empty()) {
        std::size_t comma = std::min(rest.find(','), rest.size());
        add(rest.substr(0, comma), static_cast<std::int64_t>(i));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
      }
    }
  }
  // Nothing where no class has the name; Error(bad_input) naming `data` where several have it.
  std::optional<std::int64_t> find(const std::string& name, const std::string& data) const {
    auto it = classes_.find(plain(name));
    if (it == classes_.end()) return std::nullopt;
    if (it->second.size() > 1)
      bad_input("{}: '{}' is the name of classes {} and {} of the model; name the folder by the number", data,
                printable(name), it->second[0], it->second[1]);
    return it->second[0];
  }
  // The name of a class that is spelt nearly so; empty: there is none.
  std::string nearest(const std::string& name) const {
    Names known;
    known.reserve(classes_.size());
    for (const auto& [key, unused] : classes_) known.push_back(key);
    std::string near = nearest_word(plain(name), known);
    return near.empty() ? near : names_[static_cast<std::size_t>(classes_.at(near)[0])];
  }

 private:
  void add(std::string_view name, std::int64_t number) {
    std::vector<std::int64_t>& numbers = classes_[plain(name)];
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
  }
  const Names& names_;
  std::map<std::string, std::vector<std::int64_t>> classes_;
};

// The classes of `data` that occur.
std::vector<std::int64_t> used_classes(const Labelled& data) {
  std::vector<char> seen(data.class_names.size());
  const auto* labels = data.labels.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < data.labels.size(0); ++i) {
    if (labels[i] >= 0) seen[static_cast<std::size_t>(labels[i])] = 1;
  }
  std::vector<std::int64_t> used;
  for (std::size_t c = 0; c < seen.size(); ++c) {
    if (seen[c] != 0) used.push_back(static_cast<std::int64_t>(c));
  }
  return used;
}

using Mapping = std::map<std::int64_t, std::int64_t>;  // from a class of the data to one of the model

// Nothing unless every class that is used has a name of the list.
std::optional<Mapping> by_name(const Labelled& data, const std::vector<std::int64_t>& used, const ClassIndex& index) {
  Mapping result;
  for (std::int64_t c : used) {
    auto found = index.find(data.class_names[static_cast<std::size_t>(c)], data.name);
    if (!found) return std::nullopt;
    result[c] = *found;
  }
  return result;
}

// Nothing unless every class that is used is called by a number that the model has.
std::optional<Mapping> by_number(const Labelled& data, const std::vector<std::int64_t>& used, const InputNeeds& needs) {
  Mapping result;
  for (std::int64_t c : used) {
    const std::string& name = data.class_names[static_cast<std::size_t>(c)];
    std::int64_t number = -1;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
    result[c] = number + needs.label_shift;
    if (result[c] < 0 || result[c] >= needs.classes) return std::nullopt;
  }
  return result;
}

bool changes_nothing(const Mapping& mapping) {
  return std::all_of(mapping.begin(), mapping.end(), [](const auto& pair) { return pair.first == pair.second; });
}

// "cat → 3 cat, dog → 5 dog, ..."
std::string mapping_text(const Labelled& data, const Mapping& mapping, const Names& names) {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t shown = 0;
  for (const auto& [from, to] : mapping) {
    if (shown++ == kShown) return fmt::format("{} and {} more", text, mapping.size() - kShown);
    std::string name = names.empty() ? "" : " " + printable(names[static_cast<std::size_t>(to)], 40);
    text += fmt::format("{}{} → {}{}", text.empty() ? "" : ", ", printable(data.class_name(from), 40), to, name);
  }
  return text;
}

// Names that are all different, as a data set must have them.
Names distinct(Names names) {
  std::map<std::string, int> count;
  for (const std::string& name : names) ++count[name];
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (count[names[i]] > 1) names[i] += fmt::format(" ({})", i);
  }
  return names;
}

void take(Labelled& data, const Mapping& mapping, const Names& names) {
  at::Tensor mapped = data.labels.clone();
  auto* labels = mapped.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < mapped.size(0); ++i) {
    if (labels[i] >= 0) labels[i] = mapping.at(labels[i]);
  }
  data.labels = mapped;
  data.class_names = distinct(names);
  data.sorted_classes = false;
}

[[noreturn]] void refuse_names(const Labelled& data, const std::vector<std::int64_t>& used, const ClassIndex& index,
                               const InputNeeds& needs) {
  constexpr int kNamed = 3;
  std::string text;
  int missing = 0;
  for (std::int64_t c : used) {
    std::string name = data.class_name(c);
    if (index.find(name, data.name)) continue;
    if (missing++ >= kNamed) continue;
    std::string near = index.nearest(name);
    text += fmt::format("{}'{}'{}", text.empty() ? "" : ", ", printable(name),
                        near.empty() ? "" : fmt::format(" (nearest is '{}')", printable(near)));
  }
  if (missing > kNamed) text += fmt::format(" and {} more", missing - kNamed);
  bad_input("{}: {} has no class {}; rename what is meant, or name the model's classes with --classes", data.name,
            needs.model, text);
}

// The list that a model with so many outputs may have been trained on, if all names are in it.
bool take_from_lists(Labelled& data, const std::vector<std::int64_t>& used, const InputNeeds& needs) {
  for (const ClassList& list : kClassLists) {
    if (list.classes != needs.classes) continue;
    Names names = names_of(list);
    auto mapping = by_name(data, used, ClassIndex(names));
    if (!mapping) continue;
    // Of several words for a class the first is its name.
    for (std::string& name : names) name.resize(std::min(name.find(','), name.size()));
    notices::info("{}: classes matched to those of {}, as {} has {} outputs and does not name them: {}", data.name,
                  list.name, needs.model, needs.classes, mapping_text(data, *mapping, names));
    take(data, *mapping, names);
    return true;
  }
  return false;
}

// Adds needs.label_shift; names of classes move along.
void shift_labels(Labelled& data, const InputNeeds& needs) {
  std::int64_t shift = needs.label_shift;
  if (shift == 0) return;
  at::Tensor known = data.labels.ge(0);
  at::Tensor shifted = at::where(known, data.labels + shift, data.labels);
  if (shifted.lt(0).logical_and(known).any().item<bool>())
    bad_input("{}: has the label {}, which a label shift of {} takes below 0", data.name,
              data.labels.masked_select(known).min().item<std::int64_t>(), shift);
  data.labels = shifted;
  notices::info("{}: a label and {} is the class of {}", data.name, shift, needs.model);
  if (data.class_names.empty()) return;
  Names& names = data.class_names;
  if (shift < 0) names.erase(names.begin(), names.begin() + std::min<std::int64_t>(-shift, data.classes()));
  Names before;
  for (std::int64_t i = 0; i < shift; ++i) before.push_back(fmt::format("class {}", i));
  names.insert(names.begin(), before.begin(), before.end());
  data.class_names = distinct(names);
}

// Nothing unless the model's names are those of its classes in another order, as numbers.
std::optional<Names> order_of_numbers(const InputNeeds& needs) {
  if (needs.class_names.empty()) return std::nullopt;
  Names numbers;
  for (std::int64_t c = 0; c < needs.classes; ++c) numbers.push_back(std::to_string(c));
  if (needs.class_names == numbers) return std::nullopt;
  bool same = std::is_permutation(needs.class_names.begin(), needs.class_names.end(), numbers.begin(), numbers.end());
  return same ? std::optional<Names>(numbers) : std::nullopt;
}

void take_numbers(Labelled& data, const InputNeeds& needs) {
  std::optional<Names> numbers = order_of_numbers(needs);
  if (!numbers || data.classes() > needs.classes) return shift_labels(data, needs);
  data.class_names = *numbers;
  std::vector<std::int64_t> used = used_classes(data);
  Mapping mapping = by_name(data, used, ClassIndex(needs.class_names)).value();
  notices::info("{}: classes matched by name: {}", data.name, mapping_text(data, mapping, needs.class_names));
  take(data, mapping, needs.class_names);
}

}  // namespace

void match_classes(Labelled& data, const InputNeeds& needs) {
  if (data.class_names.empty()) return take_numbers(data, needs);
  if (data.class_names == needs.class_names) return;
  std::vector<std::int64_t> used = used_classes(data);
  if (used.empty()) return;
  if (static_cast<std::int64_t>(needs.class_names.size()) == needs.classes) {
    ClassIndex index(needs.class_names);
    if (auto mapping = by_name(data, used, index)) {
      if (!changes_nothing(*mapping))
        notices::info("{}: classes matched by name: {}", data.name, mapping_text(data, *mapping, needs.class_names));
      take(data, *mapping, needs.class_names);
      return;
    }
    if (!data.sorted_classes) return shift_labels(data, needs);  // an order that somebody gave
    if (auto mapping = by_number(data, used, needs)) {
      if (!changes_nothing(*mapping))
        notices::info("{}: classes taken by their number: {}", data.name,
                      mapping_text(data, *mapping, needs.class_names));
      take(data, *mapping, needs.class_names);
      return;
    }
    refuse_names(data, used, index, needs);
  }
  if (!data.sorted_classes) return shift_labels(data, needs);
  if (auto mapping = by_number(data, used, needs)) {
    if (changes_nothing(*mapping)) return;
    notices::info("{}: classes taken by their number: {}", data.name, mapping_text(data, *mapping, {}));
    take(data, *mapping, {});
    return;
  }
  if (take_from_lists(data, used, needs)) return;
  shift_labels(data, needs);
  Mapping numbered;
  for (std::int64_t c : used_classes(data)) numbered[c] = c;
  notices::warn(
      "{}: {} does not name its {} classes, so the {} classes of the data are numbered in order: {}; --classes "
      "names the model's",
      data.name, needs.model, needs.classes, data.class_names.size(), mapping_text(data, numbered, {}));
}

}  // namespace galvani
