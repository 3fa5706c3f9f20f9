#include "mutate_code.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <cctype>
#include <cstdint>
#include <regex>
#include <set>
#include <vector>

namespace galvani {
namespace {

using Lines = std::vector<std::string>;

template <class T>
const T& pick(const std::vector<T>& items, Rng& rng) {
  return items[rng.below(items.size())];
}

std::string repeated(const std::string& text, std::uint64_t times) {
  std::string result;
  for (std::uint64_t i = 0; i < times; ++i) result += text;
  return result;
}

// Every operator LibTorch knows, prim and other libraries' included.
const std::vector<const c10::FunctionSchema*>& schemas() {
  static const std::vector<std::shared_ptr<torch::jit::Operator>> operators = torch::jit::getAllOperators();
  static const std::vector<const c10::FunctionSchema*> all = [] {
    std::vector<const c10::FunctionSchema*> result;
    for (const auto& op : operators) result.push_back(&op->schema());
    return result;
  }();
  return all;
}

std::string call_name(const c10::FunctionSchema& schema) {
  std::size_t colon = schema.name().find("::");
  std::string space = schema.name().substr(0, colon);
  std::string name = schema.name().substr(colon + 2);
  return space == "aten" ? "torch." + name : "ops." + space + "." + name;
}

std::string integer_text(Rng& rng) {
  static const std::vector<std::string> kIntegers = {"0",
                                                     "1",
                                                     "2",
                                                     "3",
                                                     "-1",
                                                     "-2",
                                                     "4",
                                                     "7",
                                                     "64",
                                                     "65536",
                                                     "1000000",
                                                     "2147483647",
                                                     "2147483648",
                                                     "-2147483648",
                                                     "4294967296",
                                                     "1000000000000",
                                                     "9223372036854775807",
                                                     "-9223372036854775807"};
  return rng.chance(0.6) ? kIntegers[rng.below(8)] : pick(kIntegers, rng);
}

// Tensors that a method surely or probably has.
std::string tensor(Rng& rng) {
  static const std::vector<std::string> kTensors = {"x", "x", "x", "self.weight", "self.bias", "self.scale", "y"};
  return pick(kTensors, rng);
}

// An expression of the type, in the dialect of archives.
std::string value_of(const c10::Type& type, Rng& rng, int depth) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return tensor(rng);
    case c10::TypeKind::IntType:
      return integer_text(rng);
    case c10::TypeKind::FloatType: {
      static const std::vector<std::string> kReals = {"0.", "0.5", "-1.", "1e30", "1e-30", "float(\"nan\")", "100."};
      return pick(kReals, rng);
    }
    case c10::TypeKind::NumberType:
      return rng.chance(0.5) ? integer_text(rng) : "0.5";
    case c10::TypeKind::BoolType:
      return rng.chance(0.5) ? "True" : "False";
    case c10::TypeKind::StringType: {
      static const std::vector<std::string> kTexts = {"mean", "none",      "trunc",    "floor", "",
                                                      "sum",  "ij,jk->ik", "constant", "cpu"};
      return "\"" + (rng.chance(0.3) ? std::string(kForbiddenFile) : pick(kTexts, rng)) + "\"";
    }
    case c10::TypeKind::OptionalType:
      return rng.chance(0.4) || depth > 3
                 ? "None"
                 : value_of(*type.castRaw<c10::OptionalType>()->getElementType(), rng, depth + 1);
    case c10::TypeKind::ListType: {
      const c10::Type& element = *type.castRaw<c10::ListType>()->getElementType();
      std::string list;
      for (std::uint64_t i = 0, n = depth > 3 ? 0 : 1 + rng.below(4); i < n; ++i)
        list += (list.empty() ? "" : ", ") + value_of(element, rng, depth + 1);
      return "[" + list + "]";
    }
    case c10::TypeKind::DeviceObjType:
      return "torch.device(\"cpu\")";
    case c10::TypeKind::VarType:
      return tensor(rng);
    default:
      return "None";
  }
}

std::string call(const c10::FunctionSchema& schema, Rng& rng) {
  std::string arguments;
  for (const c10::Argument& argument : schema.arguments()) {
    bool plain = argument.default_value().has_value() && !argument.is_out();
    if (plain && rng.chance(0.5)) {
      if (!argument.kwarg_only()) break;
      continue;
    }
    std::string value = value_of(*argument.type(), rng, 0);
    arguments += (arguments.empty() ? "" : ", ") + (argument.kwarg_only() ? argument.name() + "=" : "") + value;
  }
  return call_name(schema) + "(" + arguments + ")";
}

Lines lines_of(const std::string& text) {
  Lines lines;
  for (std::size_t start = 0; start < text.size();) {
    std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::string indent_of(const std::string& line) {
  return line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
}

// A line of a method's body, in front of which statements can be put; the number of lines if there is none.
std::size_t statement(const Lines& lines, Rng& rng) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    bool body = line.find(" = ") != std::string::npos || line.find("return ") != std::string::npos;
    if (body && indent_of(line).size() >= 4 && line.find("def ") == std::string::npos) found.push_back(i);
  }
  return found.empty() ? lines.size() : pick(found, rng);
}

void insert(Lines& lines, std::size_t at, const std::string& block) {
  if (at >= lines.size()) return;
  std::string indent = indent_of(lines[at]);
  Lines added = lines_of(block);
  for (std::string& line : added) line.insert(0, indent);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), added.begin(), added.end());
}

void insert_call(Lines& lines, Rng& rng) {
  const c10::FunctionSchema& schema = *pick(schemas(), rng);
  std::string made = call(schema, rng);
  // What it makes should be read by what follows, or the executor leaves it out.
  std::string targets;
  for (std::size_t i = 0; i < schema.returns().size(); ++i) {
    bool tensor = schema.returns()[i].type()->kind() == c10::TypeKind::TensorType;
    std::string name = !tensor || i > 1 ? "_fuzz" + std::to_string(i) : (i == 0) == rng.chance(0.8) ? "x" : "y";
    targets += name + (schema.returns().size() > 1 ? ", " : "");
  }
  insert(lines, statement(lines, rng), targets.empty() ? made : targets + " = " + made);
}

// Loops and values that grow.
void insert_growth(Lines& lines, Rng& rng) {
  std::string turns = std::to_string(rng.below(rng.chance(0.1) ? 100000 : 100));
  // Seldom, because each takes as long as it is let.
  if (rng.chance(0.02)) turns = "9223372036854775807";
  std::vector<std::string> blocks = {
      "for i in range(" + turns + "):\n  x = torch.add(x, x)",
      "n = 3\nwhile torch.lt(n, " + turns + "):\n  n = torch.add(n, 1)",
      "t = \"ab\"\nfor i in range(" + std::to_string(rng.below(40)) + "):\n  t = torch.add(t, t)",
      "l = [1, 2]\nfor i in range(" + std::to_string(rng.below(34)) + "):\n  l = torch.add(l, l)",
      "d = annotate(Dict[int, Tensor], {})\nfor i in range(100000):\n  d[i] = x",
      "l = annotate(List[Tensor], [])\nfor i in range(" + turns + "):\n  _0 = torch.append(l, x)",
      "for i in range(30):\n  x = torch.cat([x, x], 0)",
      "for i in range(9):\n  for j in range(1000):\n    x = torch.relu(x)",
      "x = torch.expand(x, [" + integer_text(rng) + ", -1, -1, -1])",
      "x = torch.as_strided(x, [2, " + integer_text(rng) + "], [1, " + integer_text(rng) + "], " + integer_text(rng) +
          ")",
      "x = torch._reshape_alias(x, [" + integer_text(rng) + ", 3], [" + integer_text(rng) + ", 1])",
      "x = torch.resize_(x, [" + integer_text(rng) + "])",
      "x = torch.set_(x, self.weight)",
      "torch.save(x, \"" + std::string(kForbiddenFile) + "\")",
      "ops.prim.RaiseException(\"no\")",
      "assert False",
      "x = torch.relu(x, out=self.weight)",
      "_1 = torch.copy_(self.weight, torch.zeros_like(self.weight))",
      "f = torch.fork(x)",
      "print(x)",
  };
  insert(lines, statement(lines, rng), pick(blocks, rng));
}

void move_lines(Lines& lines, Rng& rng) {
  std::size_t at = rng.below(lines.size());
  std::size_t other = rng.below(lines.size());
  switch (rng.below(4)) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1: {
      Lines copies(rng.chance(0.1) ? 3000 : 1, lines[at]);
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(other), copies.begin(), copies.end());
      break;
    }
    case 2:
      std::swap(lines[at], lines[other]);
      break;
    default: {
      std::string indent = rng.chance(0.5) ? "  " : repeated(" ", rng.below(9));
      lines[at] = rng.chance(0.5) ? indent + lines[at] : lines[at].substr(std::min(lines[at].size(), indent.size()));
    }
  }
}

void nest(Lines& lines, Rng& rng) {
  std::size_t at = statement(lines, rng);
  if (at >= lines.size()) return;
  static const std::uint64_t kDepths[] = {2, 10, 100, 1000, 5000, 50000};
  std::uint64_t depth = kDepths[rng.below(rng.chance(0.2) ? std::size(kDepths) : 4)];
  static const std::vector<std::pair<std::string, std::string>> kPairs = {
      {"(", ")"},    {"torch.relu(", ")"},      {"[", "]"},
      {"-", ""},     {"torch.neg(", ")"},       {"(", ",)"},
      {"{1: ", "}"}, {"x if True else (", ")"}, {"torch.add(x, ", ")"}};
  const auto& [open, close] = pick(kPairs, rng);
  std::string expression = repeated(open, depth) + "x" + repeated(close, depth);
  if (rng.chance(0.2)) expression = repeated("x + ", depth) + "x";
  if (rng.chance(0.2)) {
    std::string block;
    std::uint64_t levels = std::min<std::uint64_t>(depth, 1000);
    for (std::uint64_t i = 0; i < levels; ++i) block += repeated(" ", i) + "if bool(1):\n";
    return insert(lines, at, block + repeated(" ", levels) + "x = x");
  }
  insert(lines, at, (rng.chance(0.7) ? "x = " : "_n = ") + expression);
}

std::string replace_match(const std::string& line, const std::regex& pattern, const std::string& by, Rng& rng) {
  std::vector<std::smatch> matches(std::sregex_iterator(line.begin(), line.end(), pattern), std::sregex_iterator());
  if (matches.empty()) return line;
  const std::smatch& match = pick(matches, rng);
  return line.substr(0, static_cast<std::size_t>(match.position())) + by +
         line.substr(static_cast<std::size_t>(match.position() + match.length()));
}

// Replaces one match in one of the lines that have any.
void replace_somewhere(Lines& lines, const std::regex& pattern, const std::string& by, Rng& rng) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // Regular expressions recurse on long lines, which only earlier damage makes.
    if (lines[i].size() < 1000 && std::regex_search(lines[i], pattern)) found.push_back(i);
  }
  if (found.empty()) return;
  std::string& line = lines[pick(found, rng)];
  line = replace_match(line, pattern, by, rng);
}

void change_type(Lines& lines, Rng& rng) {
  static const std::regex kType(R"(\b(Tensor|int|float|bool|str|List\[int\]|Dict\[str, int\])\b)");
  static const std::vector<std::string> kTypes = {"int",
                                                  "float",
                                                  "str",
                                                  "bool",
                                                  "Tensor",
                                                  "List[Tensor]",
                                                  "Optional[Tensor]",
                                                  "Dict[str, Tensor]",
                                                  "Tuple[Tensor, int]",
                                                  "NoneType",
                                                  "Any",
                                                  "Future[Tensor]",
                                                  "__torch__.Nothing",
                                                  "Final[int]",
                                                  "List[List[List[int]]]",
                                                  "Device",
                                                  "Union[int, Tensor]",
                                                  "number"};
  replace_somewhere(lines, kType, pick(kTypes, rng), rng);
}

void change_class(Lines& lines, Rng& rng) {
  std::vector<std::size_t> classes;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].rfind("class ", 0) == 0) classes.push_back(i);
  }
  if (classes.empty()) return;
  std::vector<std::string> members = {
      "  extra : Final[int] = " + integer_text(rng),
      "  extra : Final[str] = \"" + repeated("ab", rng.below(1000)) + "\"",
      R"(  __constants__ = ["weight", "extra"])",
      R"(  __buffers__ = ["nothing", ])",
      R"(  __parameters__ = ["weight", "weight", ])",
      "  training : Tensor",
      "  weight : List[int]",
      "  def __setstate__(self, state: Tensor) -> NoneType:\n    _0 = torch.relu_(state)\n    return None",
      std::string("  def __setstate__(self, state: int) -> NoneType:\n    n = 0\n") +
          "    while n < state:\n      n = torch.add(n, 1)\n    return None",
      "  def __getstate__(self) -> int:\n    return " + integer_text(rng),
      "  def __init__(self) -> NoneType:\n    torch.save(1, \"" + std::string(kForbiddenFile) + "\")\n    return None",
      "  def more(self, x: Tensor) -> Tensor:\n    return (self).forward(x, )",
      "  def more(self, x: Tensor) -> Tensor:\n    return (self).more(x, )",
      "  forward_pre_hooks : List[int]",
  };
  std::size_t at = pick(classes, rng) + 1;
  Lines added = lines_of(pick(members, rng));
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), added.begin(), added.end());
}

// A default of a method's argument.
void add_default(Lines& lines, Rng& rng) {
  static const std::regex kArgument(R"(x: Tensor)");
  static const std::vector<std::string> kDefaults = {
      "x: Tensor=1",  "x: Optional[Tensor]=None", "x: int=99999999999999", "x: Tensor=[[1, 2]]",
      "x: str=\"a\"", "x: Tensor, x: Tensor",     "x: Tensor, *more",      "x: Tensor, z: List[int]=[1, 2]"};
  replace_somewhere(lines, kArgument, pick(kDefaults, rng), rng);
}

// Words dropped, doubled and exchanged, whatever they mean.
std::string scramble(const std::string& text, Rng& rng) {
  std::vector<std::string> words;  // alternately names or numbers, and what stands between them
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (char c : text) {
    if (!words.empty() && is_word(c) == is_word(words.back()[0]))
      words.back() += c;
    else
      words.emplace_back(1, c);
  }
  if (words.size() < 3) return text;
  std::string& word = words[rng.below(words.size())];
  switch (rng.below(4)) {
    case 0:
      word = pick(words, rng);
      break;
    case 1:
      word = " ";
      break;
    case 2:
      word += word;
      break;
    default:
      std::swap(word, words[rng.below(words.size())]);
  }
  std::string result;
  for (const std::string& each : words) result += each;
  return result;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::string mutate_code(const std::string& text, Rng& rng) {
  static const std::regex kOperator(R"(torch\.[a-z_0-9]+)");
  static const std::regex kNumber(R"(\b[0-9][0-9.e]*\b)");
  Lines lines = lines_of(text);
  std::uint64_t rounds = 1 + rng.below(4);
  for (std::uint64_t round = 0; round < rounds && !lines.empty(); ++round) {
    switch (rng.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        insert_call(lines, rng);
        break;
      case 5:
      case 6:
        replace_somewhere(lines, kOperator, call_name(*pick(schemas(), rng)), rng);
        break;
      case 7:
      case 8:
        replace_somewhere(lines, kNumber, rng.chance(0.1) ? "1e400" : integer_text(rng), rng);
        break;
      case 9:
        move_lines(lines, rng);
        break;
      case 10:
        nest(lines, rng);
        break;
      case 11:
        insert_growth(lines, rng);
        break;
      case 12:
        change_type(lines, rng);
        break;
      case 13:
        change_class(lines, rng);
        break;
      case 14:
        add_default(lines, rng);
        break;
      default:
        lines = lines_of(scramble(joined(lines), rng));
    }
  }
  return joined(lines);
}

}  // namespace galvani
