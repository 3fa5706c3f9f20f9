// Verbs and their options. A thin cover of the library that parses the command line, which takes seconds to compile and
// is included in flags.cpp alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

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

// An option that was added; everything is said in a chain.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& group(const std::string& title);  // of the part of the help it stands in
  Option& required();
  Option& check(const Check& check);
  Option& show_default();             // what the variable holds now, in the help
  Option& separated_by(char letter);  // several values in one text
  Option& exactly(int values);

 private:
  CLI::Option* option_;
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
  // What one of its verbs is for.
  std::string help_of(const std::string& name) const;
  // Of the program: does what the command line says; Error(usage) if that makes no sense.
  void parse(int argc, char** argv);

 private:
  explicit Verb(CLI::App* app);

  std::unique_ptr<CLI::App> owned_;  // of the program
  CLI::App* app_;
  std::string version_;   // of the program
  std::string overview_;  // likewise
  std::vector<std::unique_ptr<Verb>> verbs_;
};

}  // namespace galvani::cli
