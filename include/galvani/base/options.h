// Options that describe themselves, and specs such as `kmnc:k=1000` that set them.
//
// A component declares its options once (name, type, range, default, help); the command line, the documentation and
// the record of a run all come from that declaration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace galvani {

using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

struct OptionInfo {
  std::string name;
  OptionValue fallback;  // its alternative is the option's type
  std::string help;
  std::optional<double> low;  // inclusive bounds of a number
  std::optional<double> high;
  std::vector<std::string> choices;  // what a string may be; empty: anything
};

using OptionSchema = std::vector<OptionInfo>;

std::string to_string(const OptionValue& value);

// `name` or `name:key=value,key=value`, not yet checked against a schema. A value with commas is written in parentheses:
// `mutate:set=(rotation,blur:w=2),alpha=0.3`.
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings;

  static Spec parse(std::string_view text);
  // A comma-separated list of specs. A part that has '=' and no ':' before it is a setting of the spec to its left:
  // `a:x=1,y=2,b,c:z=3` is a(x=1,y=2), b, c(z=3).
  static std::vector<Spec> parse_list(std::string_view text);
  std::string str() const;
};

// Resolved values: every option of the schema has one. Unknown names, wrong types and values out of range are usage
// errors that name the owner, the option and what it accepts.
class Options {
 public:
  Options() = default;
  Options(std::string owner, const OptionSchema& schema, const Spec& spec);

  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  // The full spec, defaults included, in schema order: what a run record stores.
  std::string str() const;
  const std::map<std::string, OptionValue, std::less<>>& values() const { return values_; }

 private:
  const OptionValue& value(std::string_view name) const;

  std::string owner_;
  std::vector<std::string> order_;
  std::map<std::string, OptionValue, std::less<>> values_;
};

// Parses text as the type of `info.fallback` and checks bounds and choices; `owner` is named in the error.
OptionValue parse_option(const std::string& owner, const OptionInfo& info, std::string_view text);

// The closest of `known` to a mistyped word, for "did you mean"; empty if none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace galvani
