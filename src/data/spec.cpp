#include "galvani/data/spec.h"

#include <charconv>
#include <cmath>
#include <filesystem>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "galvani/base/text.h"
#include "galvani/data/catalogue.h"
#include "galvani/data/memory.h"

namespace galvani {
namespace {

constexpr std::int64_t kLongestClip = 100'000'000;

// Throws a usage error that starts with the spec it is about.
class SpecParser {
 public:
  explicit SpecParser(std::string spec) : spec_(std::move(spec)) {}

  DataSpec parse() {
    DataSpec result;
    std::string base = spec_;
    if (!exists(spec_)) {
      std::size_t bracket = spec_.find('[');
      base = spec_.substr(0, bracket);
      if (bracket != std::string::npos) parse_brackets(bracket, result.selectors);
    }
    std::size_t colon = base.rfind(':');
    if (colon != std::string::npos && !exists(base) && base.find('/', colon) == std::string::npos) {
      result.split = base.substr(colon + 1);
      base.resize(colon);
      if (result.split.empty()) wrong("a split such as test must follow the colon");
    }
    result.source = base;
    if (base.empty()) wrong("it names no data");
    if (find_catalogue_entry(base) != nullptr || result.is_in_memory()) return result;
    result.is_path = base.find_first_of("/.") != std::string::npos || exists(base);
    if (!result.is_path) unknown_name(base);
    return result;
  }

 private:
  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    bad_usage("data '{}': {}", printable(spec_, 200), fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] void unknown_name(const std::string& name) const {
    std::vector<std::string> known;
    std::string all;
    for (const CatalogueEntry& entry : catalogue()) {
      known.push_back(entry.name);
      all += (all.empty() ? "" : ", ") + entry.name;
    }
    std::string near = nearest_word(name, known);
    if (!near.empty()) wrong("there is no data set or path '{}'; did you mean '{}'?", printable(name), near);
    wrong("there is no data set or path '{}'; known sets are {}", printable(name), all);
  }

  static bool exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  }

  void parse_brackets(std::size_t at, std::vector<Bracket>& selectors) const {
    while (at < spec_.size()) {
      if (spec_[at] != '[') wrong("'{}' follows the closing bracket", printable(spec_.substr(at)));
      std::size_t close = spec_.find(']', at);
      if (close == std::string::npos) wrong("a bracket is not closed");
      selectors.push_back(parse_selector(spec_.substr(at + 1, close - at - 1)));
      at = close + 1;
    }
  }

  Bracket parse_selector(const std::string& text) const {
    if (text.empty()) wrong("the brackets are empty");
    if (text.find('=') != std::string::npos) return parse_settings(text);
    Bracket selector;
    std::vector<std::string> parts = split(text, ':');
    if (parts.size() > 3) wrong("'[{}]' has more than start, end and step", text);
    if (!parts[0].empty()) selector.begin = amount(parts[0]);
    if (parts.size() == 1) {
      selector.kind = Bracket::Kind::item;
      if (selector.begin->percent) wrong("'[{}]' is one position, which cannot be a percentage", text);
      return selector;
    }
    if (!parts[1].empty()) selector.end = amount(parts[1]);
    if (parts.size() == 3 && !parts[2].empty()) selector.step = integer(parts[2]);
    if (selector.step == 0) wrong("the step of '[{}]' is 0", text);
    return selector;
  }

  // sample=1000,seed=3   class=cat,dog   per-class=100,seed=1   length=16000
  Bracket parse_settings(const std::string& text) const {
    Bracket selector;
    bool chosen = false;
    bool seeded = false;
    std::string key;
    for (const std::string& part : split(text, ',')) {
      std::size_t equals = part.find('=');
      std::string value = part;
      if (equals != std::string::npos) {
        key = part.substr(0, equals);
        value = part.substr(equals + 1);
      }
      if (value.empty()) wrong("'{}' has no value", printable(key));
      bool another_class = equals == std::string::npos && key == "class";
      if (equals == std::string::npos && !another_class) wrong("'{}' is not of the form key=value", printable(part));
      if (key == "class" && (!chosen || another_class)) {
        selector.kind = Bracket::Kind::classes;
        selector.classes.push_back(value);
        chosen = true;
      } else if ((key == "sample" || key == "per-class") && !chosen) {
        selector.kind = key == "sample" ? Bracket::Kind::sample : Bracket::Kind::per_class;
        selector.count = amount(value);
        if (selector.count.value <= 0) wrong("{} must be more than 0, not {}", key, printable(value));
        chosen = true;
      } else if (key == "length" && !chosen) {
        selector.kind = Bracket::Kind::length;
        selector.count.value = static_cast<double>(integer(value));
        if (selector.count.value < 1 || selector.count.value > static_cast<double>(kLongestClip))
          wrong("a length is from 1 to {} samples, not {}", kLongestClip, printable(value));
        chosen = true;
      } else if (key == "seed" && !seeded) {
        std::int64_t seed = integer(value);
        if (seed < 0) wrong("the seed must not be negative");
        selector.seed = static_cast<std::uint64_t>(seed);
        seeded = true;
      } else {
        wrong("'{}' does not belong in '[{}]'; use sample=, class= or per-class=, and seed=, or length=",
              printable(key), printable(text));
      }
    }
    if (!chosen) wrong("'[{}]' has a seed but nothing to draw", printable(text));
    if (seeded && selector.kind == Bracket::Kind::classes) wrong("class= needs no seed");
    if (seeded && selector.kind == Bracket::Kind::length) wrong("length= needs no seed");
    return selector;
  }

  Amount amount(std::string text) const {
    Amount result;
    result.percent = text.back() == '%';
    if (!result.percent) {
      result.value = static_cast<double>(integer(text));
      return result;
    }
    text.pop_back();
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.value);
    bool good = error == std::errc{} && end == text.data() + text.size() && std::abs(result.value) <= 100;
    if (!good) wrong("'{}%' is not a percentage from -100 to 100", printable(text));
    return result;
  }

  std::int64_t integer(const std::string& text) const {
    constexpr std::int64_t kLargest = std::int64_t{1} << 52;  // exact as a double
    std::int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || std::abs(value) > kLargest)
      wrong("'{}' is not a whole number", printable(text));
    return value;
  }

  static std::vector<std::string> split(const std::string& text, char by) {
    std::vector<std::string> parts(1);
    for (char c : text) {
      if (c == by) {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    return parts;
  }

  std::string spec_;
};

}  // namespace

std::int64_t Amount::of(std::int64_t n) const {
  if (!percent) return static_cast<std::int64_t>(value) + (value < 0 ? n : 0);
  // -20% is 80%, so that [:80%] and [-20%:] share their border whatever n is.
  double share = value < 0 || std::signbit(value) ? 100 + value : value;
  return std::llround(share * static_cast<double>(n) / 100);
}

std::string Amount::str() const {
  return percent ? fmt::format("{}%", value) : fmt::format("{}", static_cast<std::int64_t>(value));
}

std::string Bracket::str() const {
  std::string seeded = seed == 0 ? "" : fmt::format(",seed={}", seed);
  switch (kind) {
    case Kind::item:
      return fmt::format("[{}]", begin->str());
    case Kind::sample:
      return fmt::format("[sample={}{}]", count.str(), seeded);
    case Kind::per_class:
      return fmt::format("[per-class={}{}]", count.str(), seeded);
    case Kind::length:
      return fmt::format("[length={}]", count.str());
    case Kind::classes: {
      std::string names;
      for (const std::string& name : classes) names += (names.empty() ? "" : ",") + name;
      return fmt::format("[class={}]", names);
    }
    case Kind::slice:
      break;
  }
  return fmt::format("[{}:{}{}]", begin ? begin->str() : "", end ? end->str() : "",
                     step == 1 ? "" : fmt::format(":{}", step));
}

bool DataSpec::is_in_memory() const {
  return !is_path && source == kMemoryData && !split.empty();
}

std::int64_t DataSpec::clip_length() const {
  std::int64_t length = 0;
  for (const Bracket& selector : selectors) {
    if (selector.kind == Bracket::Kind::length) length = static_cast<std::int64_t>(selector.count.value);
  }
  return length;
}

std::string DataSpec::str() const {
  std::string result = source;
  if (!split.empty()) result += ":" + split;
  for (const Bracket& selector : selectors) result += selector.str();
  return result;
}

std::vector<DataSpec> parse_data_specs(const std::string& text) {
  std::vector<std::string> parts(1);
  std::error_code ignored;
  // A path that exists is one whatever its name holds.
  std::size_t path = 0;
  for (std::size_t end : {text.find('['), text.size()}) {
    if (end <= text.size() && std::filesystem::exists(text.substr(0, end), ignored)) path = end;
  }
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    inside = i >= path && (c == '[' || (inside && c != ']'));
    if (c == '+' && !inside && i >= path) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  std::vector<DataSpec> result;
  for (const std::string& part : parts) {
    std::string spec = std::filesystem::exists(part, ignored) ? part : trimmed(part);
    if (spec.empty()) bad_usage("data '{}': it names no data", printable(text, 200));
    result.push_back(SpecParser(spec).parse());
  }
  return result;
}

std::string absolute_spec(const std::string& text) {
  std::string result;
  for (DataSpec part : parse_data_specs(text)) {
    std::error_code error;
    std::filesystem::path absolute = std::filesystem::absolute(part.source, error).lexically_normal();
    if (part.is_path && !error) part.source = absolute.string();
    result += (result.empty() ? "" : "+") + part.str();
  }
  return result;
}

std::string training_split_of(const std::string& text) {
  std::string name;
  for (const DataSpec& part : parse_data_specs(text)) {
    if (part.is_path || part.is_in_memory() || (!name.empty() && part.source != name)) return "";
    name = part.source;
  }
  return name + ":train";
}

}  // namespace galvani
