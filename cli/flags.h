// Verbs and their options. A thin cover of the library that parses the command line, which takes seconds to compile and
// is included in flags.cpp alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "galvani/base/json.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
class Option;
}  // namespace CLI

namespace galvani::cli {

// Inclusive bounds of a number.
template <class T>
struct Range {
  Range(T least, T most) : low(least), high(most) {}
  T low;
  T high;
};
// What a text may be.
struct OneOf {
  std::vector<std::string> choices;
};
using Check = std::variant<Range<int>, Range<std::int64_t>, Range<double>, OneOf>;

// What was said of an option: the help, the Python package and its documentation come from it.
struct DeclaredOption {
  std::string name;  // "--output", or "model" of what stands without a name
  std::string kind;  // text, texts, integer, number or flag
  std::string help;
  std::string group;
  Json fallback;       // what the variable held
  bool shown = false;  // and whether that is said
  std::vector<std::string> choices;
  std::string range;  // "from 1 to 4096"
  bool required = false;
};

// An option that was added; everything is said in a chain.
class Option {
 public:
  Option(CLI::Option* option, DeclaredOption* declared) : option_(option), declared_(declared) {}
  Option& group(const std::string& title);  // of the part of the help it stands in
  Option& required();
  Option& check(const Check& check);
  Option& show_default();             // what the variable holds now, in the help
  Option& separated_by(char letter);  // several values in one text
  Option& exactly(int values);

 private:
  CLI::Option* option_;
  DeclaredOption* declared_;
};

class Verb {
 public:
  // The program itself: its verbs are added to it.
  Verb(const std::string& name, const std::string& help, const std::string& version);
  ~Verb();
  Verb(const Verb&) = delete;
  Verb& operator=(const Verb&) = delete;

  Verb& add_verb(const std::string& name, const std::string& help);
  void need_verb();                             // one of its own verbs must be named
  void examples(const std::string& text);       // at the end of its help
  void ready(std::function<void()> action);     // once its options are known; replaces what was set before
  void callback(std::function<void()> action);  // its work

  // `names`: "-o,--output", or a word for what stands without one. The variable must outlive the parsing.
  Option add_option(const std::string& names, std::string& to, const std::string& help);
  Option add_option(const std::string& names, std::vector<std::string>& to, const std::string& help);
  Option add_option(const std::string& names, int& to, const std::string& help);
  Option add_option(const std::string& names, std::int64_t& to, const std::string& help);
  Option add_option(const std::string& names, std::uint64_t& to, const std::string& help);
  Option add_option(const std::string& names, double& to, const std::string& help);
  Option add_flag(const std::string& names, bool& to, const std::string& help);

  bool was_given(const std::string& name) const;
  std::vector<std::string> given() const;  // names of the options that were used
  // Usage error if an option was given an empty text: a variable of a script that was never set gives one.
  void refuse_empty() const;

  // Of the program: what `galvani` alone and `galvani help` print.
  void overview(std::string text);
  // The name, help, examples, options and verbs of this one, for machines.
  Json declarations() const;
  // What one of its verbs is for.
  std::string help_of(const std::string& name) const;
  // Of the program: does what the command line says; Error(usage) if that makes no sense.
  void parse(int argc, char** argv);

 private:
  explicit Verb(CLI::App* app);
  template <class T>
  DeclaredOption* declare(const CLI::Option* option, const char* kind, const T& value, const std::string& help);

  std::unique_ptr<CLI::App> owned_;  // of the program
  CLI::App* app_;
  std::string version_;   // of the program
  std::string overview_;  // likewise
  std::string examples_;
  std::deque<DeclaredOption> declared_;  // in the order they were added; they do not move
  std::vector<std::unique_ptr<Verb>> verbs_;
};

}  // namespace galvani::cli
