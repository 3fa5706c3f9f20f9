#include "flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/options.h"

namespace galvani::cli {
namespace {

// A verb and how it is called: "galvani data export".
struct Place {
  const CLI::App* app;
  std::string before;  // "galvani data"
  int next = 1;        // the first argument after it

  std::string name() const { return before.empty() ? app->get_name() : before + " " + app->get_name(); }
  // For sentences: without the program.
  std::string verb() const { return before.empty() ? "galvani" : name().substr(name().find(' ') + 1); }
};

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string or_list(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

// The words up to the first option name a verb; a mistyped one is refused by name.
Place find_verb(const CLI::App& program, const std::vector<std::string>& words, int first) {
  Place at{&program, "", first};
  for (; at.next < static_cast<int>(words.size()); ++at.next) {
    const std::string& word = words[static_cast<std::size_t>(at.next)];
    std::vector<const CLI::App*> verbs = verbs_of(*at.app);
    if (verbs.empty() || word.rfind('-', 0) == 0) break;
    std::vector<std::string> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* verb : verbs) {
      if (verb->get_name() == word) found = verb;
      names.push_back(verb->get_name());
    }
    if (found == nullptr) {
      std::string near = nearest_word(word, names);
      bad_usage(
          "there is no verb '{}'{}{}", printable(word), at.before.empty() ? "" : " in " + at.verb(),
          near.empty() ? fmt::format("; known are {}", fmt::join(names, ", ")) : "; did you mean '" + near + "'?");
    }
    at.before = at.name();
    at.app = found;
  }
  return at;
}

// Looks at every option before the library does, whose sentences are not ours.
class OptionScan {
 public:
  OptionScan(const Place& place, const std::vector<std::string>& words) : place_(place), words_(words) {}

  bool wants_help() {
    for (at_ = place_.next; at_ < static_cast<int>(words_.size()); ++at_) {
      const std::string& word = current();
      if (word == "-h" || word == "--help") return true;
      if (word == "--") return false;
      if (word.rfind("--", 0) == 0) {
        std::size_t equals = word.find('=');
        look(word.substr(0, equals), equals != std::string::npos, /*more=*/false);
      } else if (word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0) {
        letters(word);
      }
    }
    return false;
  }

 private:
  const std::string& current() const { return words_[static_cast<std::size_t>(at_)]; }

  void letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      bool rest = i + 1 < word.size();
      if (look(std::string("-") + word[i], rest, /*more=*/true)) return;  // the rest is its value
    }
  }

  // Whether it takes a value. `attached`: text follows in the same word, which may be `more` letters.
  bool look(const std::string& name, bool attached, bool more) {
    const CLI::Option* option = place_.app->get_option_no_throw(name);
    if (option == nullptr) unknown(name);
    int values = option->get_items_expected_min();
    if (option->get_items_expected_max() == 0) {
      if (attached && !more) bad_usage("{} of {} takes no value", name, place_.verb());
      return false;
    }
    bool once =
        option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw && option->get_expected_max() <= values;
    if (once && !seen_.insert(option).second) bad_usage("{} is given twice, but {} takes one", name, place_.verb());
    for (int i = attached ? 1 : 0; i < values; ++i) {
      bool there = at_ + 1 < static_cast<int>(words_.size());
      if (!there || is_option(words_[static_cast<std::size_t>(at_) + 1]))
        bad_usage("{} of {} needs {}: {}", name, place_.verb(),
                  values == 1 ? "a value" : fmt::format("{} values", values), option->get_description());
      ++at_;
    }
    return true;
  }

  bool is_option(const std::string& word) const {
    return word.rfind("--", 0) == 0 && place_.app->get_option_no_throw(word) != nullptr;
  }

  [[noreturn]] void unknown(const std::string& name) const {
    if (place_.before.empty())
      bad_usage("there is no {} before the verb: options follow it, as in 'galvani inspect model.onnx --json'",
                printable(name));
    std::vector<std::string> names;
    for (const CLI::Option* option : place_.app->get_options()) {
      for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
    }
    std::string near = name.size() > 2 ? nearest_word(name, names) : "";
    bad_usage("there is no {} in {}; {}", printable(name), place_.verb(),
              near.empty() ? fmt::format("'galvani help {}' lists what there is", place_.verb())
                           : fmt::format("did you mean {}?", near));
  }

  const Place& place_;
  const std::vector<std::string>& words_;
  int at_ = 0;
  std::set<const CLI::Option*> seen_;
};

// What the library finds wrong after that.
[[noreturn]] void explain(const CLI::ParseError& e, const CLI::App& program, const Place& place) {
  if (!verbs_of(*place.app).empty()) {
    std::vector<std::string> names;
    for (const CLI::App* verb : verbs_of(*place.app)) names.push_back(verb->get_name());
    bad_usage("{} needs one of its verbs: {}", place.verb(), or_list(names));
  }
  for (const CLI::Option* option : place.app->get_options()) {
    if (option->get_required() && option->count() == 0)
      bad_usage("{} needs {}: {}", place.verb(), option->get_name(), option->get_description());
  }
  std::vector<std::string> left = program.remaining(/*recurse=*/true);
  if (!left.empty())
    bad_usage("'{}' is more than {} takes; 'galvani help {}' says what it takes", printable(left[0]), place.verb(),
              place.verb());
  bad_usage("{}", e.what());
}

template <class T>
void must_be_number(CLI::Option* option) {
  option->check([option](const std::string& text) -> std::string {
    T value{};
    bool negative = text.rfind('-', 0) == 0;  // which the library lets wrap around
    if (!CLI::detail::lexical_cast(text, value) || (std::is_unsigned_v<T> && negative))
      bad_usage("{} is '{}', but must be a {}", option->get_name(), printable(text),
                std::is_floating_point_v<T> ? "number"
                : std::is_unsigned_v<T>     ? "whole number that is not negative"
                                            : "whole number");
    return "";
  });
}

template <class T>
std::string range_text(const Range<T>& range) {
  constexpr double kNobodyGivesMore = 1e9;
  return static_cast<double>(range.high) < kNobodyGivesMore ? fmt::format("from {} to {}", range.low, range.high)
                                                            : fmt::format("at least {}", range.low);
}

template <class T>
void must_be_within(CLI::Option* option, const Range<T>& range) {
  // The help shows it as the library does.
  std::string shown = CLI::Range(range.low, range.high).get_description();
  option->check(
      [option, range](const std::string& text) -> std::string {
        T value{};
        bool number = CLI::detail::lexical_cast(text, value);
        if (number && value >= range.low && value <= range.high) return "";
        bad_usage("{} is {}, but must be {}", option->get_name(), printable(text), range_text(range));
      },
      shown);
}

void must_be_one_of(CLI::Option* option, const OneOf& known) {
  option->check(
      [option, known](const std::string& text) -> std::string {
        if (std::find(known.choices.begin(), known.choices.end(), text) != known.choices.end()) return "";
        bad_usage("{} is '{}', but must be {}", option->get_name(), printable(text), or_list(known.choices));
      },
      CLI::IsMember(known.choices).get_description());
}

}  // namespace

Option& Option::group(const std::string& title) {
  option_->group(title);
  declared_->group = title;
  return *this;
}

Option& Option::required() {
  option_->required();
  declared_->required = true;
  return *this;
}

Option& Option::check(const Check& check) {
  std::visit(
      [this](const auto& wanted) {
        if constexpr (std::is_same_v<std::decay_t<decltype(wanted)>, OneOf>) {
          must_be_one_of(option_, wanted);
          declared_->choices = wanted.choices;
        } else {
          must_be_within(option_, wanted);
          declared_->range = range_text(wanted);
        }
      },
      check);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  declared_->shown = true;
  return *this;
}

Option& Option::separated_by(char letter) {
  option_->delimiter(letter);
  return *this;
}

Option& Option::exactly(int values) {
  option_->expected(values);
  return *this;
}

Verb::Verb(const std::string& name, const std::string& help, const std::string& version)
    : owned_(std::make_unique<CLI::App>(help, name)), app_(owned_.get()), version_(version) {
  app_->set_version_flag("-V,--version", version);
}

Verb::Verb(CLI::App* app) : app_(app) {}

Verb::~Verb() = default;

Verb& Verb::add_verb(const std::string& name, const std::string& help) {
  verbs_.push_back(std::unique_ptr<Verb>(new Verb(app_->add_subcommand(name, help))));
  return *verbs_.back();
}

void Verb::need_verb() {
  app_->require_subcommand(1);
}

void Verb::examples(const std::string& text) {
  examples_ = text;
  app_->footer(text.empty() ? "" : "Examples:\n" + text);
}

void Verb::ready(std::function<void()> action) {
  app_->parse_complete_callback(std::move(action));
}

void Verb::callback(std::function<void()> action) {
  app_->callback(std::move(action));
}

template <class T>
DeclaredOption* Verb::declare(const CLI::Option* option, const char* kind, const T& value, const std::string& help) {
  DeclaredOption declared;
  declared.name = option->get_name();
  declared.kind = kind;
  declared.help = help;
  declared.fallback = value;
  declared_.push_back(std::move(declared));
  return &declared_.back();
}

Option Verb::add_option(const std::string& names, std::string& to, const std::string& help) {
  CLI::Option* option = app_->add_option(names, to, help);
  return {option, declare(option, "text", to, help)};
}

Option Verb::add_option(const std::string& names, std::vector<std::string>& to, const std::string& help) {
  CLI::Option* option = app_->add_option(names, to, help);
  return {option, declare(option, "texts", to, help)};
}

Option Verb::add_option(const std::string& names, int& to, const std::string& help) {
  CLI::Option* option = app_->add_option(names, to, help);
  must_be_number<int>(option);
  return {option, declare(option, "integer", to, help)};
}

Option Verb::add_option(const std::string& names, std::int64_t& to, const std::string& help) {
  CLI::Option* option = app_->add_option(names, to, help);
  must_be_number<std::int64_t>(option);
  return {option, declare(option, "integer", to, help)};
}

Option Verb::add_option(const std::string& names, std::uint64_t& to, const std::string& help) {
  CLI::Option* option = app_->add_option(names, to, help);
  must_be_number<std::uint64_t>(option);
  return {option, declare(option, "integer", to, help)};
}

Option Verb::add_option(const std::string& names, double& to, const std::string& help) {
  CLI::Option* option = app_->add_option(names, to, help);
  must_be_number<double>(option);
  return {option, declare(option, "number", to, help)};
}

Option Verb::add_flag(const std::string& names, bool& to, const std::string& help) {
  CLI::Option* option = app_->add_flag(names, to, help);
  return {option, declare(option, "flag", to, help)};
}

Json Verb::declarations() const {
  Json options = Json::array();
  for (const DeclaredOption& option : declared_) {
    options.push_back({{"name", option.name},
                       {"kind", option.kind},
                       {"help", option.help},
                       {"group", option.group},
                       {"default", option.shown ? option.fallback : Json()},
                       {"choices", option.choices},
                       {"range", option.range},
                       {"required", option.required}});
  }
  Json verbs = Json::array();
  for (const auto& verb : verbs_) verbs.push_back(verb->declarations());
  return {{"name", app_->get_name()},
          {"help", app_->get_description()},
          {"examples", examples_},
          {"options", options},
          {"verbs", verbs}};
}

bool Verb::was_given(const std::string& name) const {
  return app_->count(name) > 0;
}

std::vector<std::string> Verb::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() > 0) names.push_back(option->get_name());
  }
  return names;
}

void Verb::refuse_empty() const {
  for (const CLI::Option* option : app_->get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) bad_usage("{} is empty: leave it out, or give it a value", option->get_name());
    }
  }
}

void Verb::overview(std::string text) {
  overview_ = std::move(text);
}

std::string Verb::help_of(const std::string& name) const {
  for (const CLI::App* verb : verbs_of(*app_)) {
    if (verb->get_name() == name) return verb->get_description();
  }
  fail(ErrorCode::internal, "there is no verb {}", name);
}

void Verb::parse(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  bool asks = argc > 1 && words[1] == "help";
  Place place = find_verb(*app_, words, asks ? 2 : 1);
  bool help = asks || argc == 1 || OptionScan(place, words).wants_help();
  if (help) {
    std::string text = place.app == app_ ? overview_ : place.app->help(place.before);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  if (place.app == app_ && app_->get_option_no_throw(words[static_cast<std::size_t>(place.next)]) != nullptr) {
    std::puts(version_.c_str());
    return;
  }
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    explain(e, *app_, place);
  }
}

}  // namespace galvani::cli
