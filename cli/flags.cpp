#include "flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "galvani/base/error.h"
#include "galvani/base/options.h"

namespace galvani::cli {
namespace {

// Refuses a mistyped verb by name; the library itself would only say that one is required.
void check_verb(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    std::vector<const CLI::App*> verbs = at->get_subcommands([](const CLI::App*) { return true; });
    if (verbs.empty()) return;
    const CLI::App* next = nullptr;
    std::vector<std::string> names;
    for (const CLI::App* verb : verbs) {
      if (verb->get_name() == argv[i]) next = verb;
      names.push_back(verb->get_name());
    }
    if (next == nullptr) {
      std::string near = nearest_word(argv[i], names);
      bad_usage(
          "there is no verb '{}'{}", printable(argv[i]),
          near.empty() ? fmt::format("; known are {}", fmt::join(names, ", ")) : "; did you mean '" + near + "'?");
    }
    at = next;
  }
}

}  // namespace

Option& Option::group(const std::string& title) {
  option_->group(title);
  return *this;
}

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::check(const Check& check) {
  std::visit(
      [this](const auto& wanted) {
        if constexpr (std::is_same_v<std::decay_t<decltype(wanted)>, OneOf>) {
          option_->check(CLI::IsMember(wanted.choices));
        } else {
          option_->check(CLI::Range(wanted.low, wanted.high));
        }
      },
      check);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
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
    : owned_(std::make_unique<CLI::App>(help, name)), app_(owned_.get()) {
  app_->set_version_flag("--version", version);
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
  app_->footer(text.empty() ? "" : "Examples:\n" + text);
}

void Verb::ready(std::function<void()> action) {
  app_->parse_complete_callback(std::move(action));
}

void Verb::callback(std::function<void()> action) {
  app_->callback(std::move(action));
}

Option Verb::add_option(const std::string& names, std::string& to, const std::string& help) {
  return Option(app_->add_option(names, to, help));
}

Option Verb::add_option(const std::string& names, std::vector<std::string>& to, const std::string& help) {
  return Option(app_->add_option(names, to, help));
}

Option Verb::add_option(const std::string& names, int& to, const std::string& help) {
  return Option(app_->add_option(names, to, help));
}

Option Verb::add_option(const std::string& names, std::int64_t& to, const std::string& help) {
  return Option(app_->add_option(names, to, help));
}

Option Verb::add_option(const std::string& names, std::uint64_t& to, const std::string& help) {
  return Option(app_->add_option(names, to, help));
}

Option Verb::add_option(const std::string& names, double& to, const std::string& help) {
  return Option(app_->add_option(names, to, help));
}

Option Verb::add_flag(const std::string& names, bool& to, const std::string& help) {
  return Option(app_->add_flag(names, to, help));
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

int Verb::parse(int argc, char** argv) {
  check_verb(*app_, argc, argv);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app_->exit(e) == 0 ? 0 : 2;
  }
  return 0;
}

}  // namespace galvani::cli
