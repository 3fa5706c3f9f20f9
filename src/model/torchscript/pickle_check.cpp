#include "model/torchscript/pickle_check.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "galvani/base/error.h"

namespace galvani::torchscript {
namespace {

constexpr int kMostDepth = 200;
constexpr std::size_t kMostDimensions = 64;
constexpr std::size_t kLongestTypeName = 2000;

enum class Kind {
  none,
  boolean,
  integer,
  real,
  text,
  tuple,
  list,
  dict,
  scalar_type,
  storage,
  tensor,
  global,
  instance,
  object,
  other
};

struct Item {
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // also: bytes per item of a scalar type, items of a storage
  std::string text;          // also: the name of a global
  std::vector<Item*> items;  // of tuples and lists; keys and values of dicts
  int depth = 0;
  bool shared = false;  // remembered in the memo: adding to it could make a cycle
};

const std::map<std::string, std::int64_t>& storage_types() {
  static const std::map<std::string, std::int64_t> kTypes = {
      {"torch.FloatStorage", 4},    {"torch.DoubleStorage", 8},       {"torch.HalfStorage", 2},
      {"torch.BFloat16Storage", 2}, {"torch.IntStorage", 4},          {"torch.LongStorage", 8},
      {"torch.ShortStorage", 2},    {"torch.CharStorage", 1},         {"torch.ByteStorage", 1},
      {"torch.BoolStorage", 1},     {"torch.ComplexFloatStorage", 8}, {"torch.ComplexDoubleStorage", 16}};
  return kTypes;
}

class Reader {
 public:
  Reader(std::string_view bytes, const StorageSize& storage_size, const std::string& where)
      : bytes_(bytes), storage_size_(storage_size), where_(where) {}

  void run(PickleRoot root) {
    if (byte() != 0x80 || byte() != 2) refuse("is not of pickle protocol 2");
    while (step()) {
    }
    if (stack_.size() != 1 || !marks_.empty() || at_ != bytes_.size()) refuse("does not end where it should");
    if (stack_[0]->kind != (root == PickleRoot::object ? Kind::object : Kind::tuple))
      refuse("holds the wrong kind of value");
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { bad_input("{} is damaged: it {}", where_, why); }
  void expect(bool condition, const char* why) const {
    if (!condition) refuse(why);
  }

  std::string_view take(std::size_t n) {
    if (n > bytes_.size() - at_) refuse("ends too early");
    std::string_view part = bytes_.substr(at_, n);
    at_ += n;
    return part;
  }
  unsigned char byte() { return static_cast<unsigned char>(take(1)[0]); }
  template <class Int>
  Int number() {
    Int value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string line() {
    std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("ends too early");
    std::string text(take(end - at_));
    ++at_;
    return text;
  }

  Item& push(Kind kind) {
    values_.emplace_back();
    values_.back().kind = kind;
    stack_.push_back(&values_.back());
    return values_.back();
  }
  void push_integer(std::int64_t value) { push(Kind::integer).integer = value; }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Item* pop() {
    expect(stack_.size() > floor(), "takes a value where there is none");
    Item* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Item* top() {
    expect(stack_.size() > floor(), "uses a value where there is none");
    return stack_.back();
  }
  std::vector<Item*> pop_to_mark() {
    expect(!marks_.empty(), "ends a group that never began");
    std::vector<Item*> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  void add(Item& container, const std::vector<Item*>& items) {
    for (Item* item : items) {
      container.items.push_back(item);
      container.depth = std::max(container.depth, item->depth + 1);
    }
    expect(container.depth <= kMostDepth, "is nested too deeply");
  }
  void push_tuple(const std::vector<Item*>& items) { add(push(Kind::tuple), items); }
  void push_tuple_of(std::size_t count) {
    std::vector<Item*> items(count);
    for (std::size_t i = count; i > 0; --i) items[i - 1] = pop();
    push_tuple(items);
  }
  Item& container(Kind kind) {
    Item* value = top();
    expect(value->kind == kind && !value->shared, "adds to something that is no fresh list or dictionary");
    return *value;
  }

  // torch.jit numbers the memo from 0 without gaps.
  void remember(std::size_t id) {
    expect(id <= memo_.size(), "remembers a value under a number out of order");
    if (id == memo_.size()) memo_.push_back(nullptr);
    top()->shared = true;
    memo_[id] = top();
  }
  void recall(std::size_t id) {
    expect(id < memo_.size(), "recalls a value that it never remembered");
    stack_.push_back(memo_[id]);
  }

  void set_items(const std::vector<Item*>& items) {
    expect(items.size() % 2 == 0, "has a key without a value");
    for (std::size_t i = 0; i < items.size(); i += 2) {
      Kind kind = items[i]->kind;
      expect(kind == Kind::text || kind == Kind::integer || kind == Kind::real || kind == Kind::boolean,
             "has a key that cannot be one");
    }
    add(container(Kind::dict), items);
  }

  void global() {
    std::string module = line();
    std::string name = module + "." + line();
    static const std::vector<std::string> kFunctions = {"torch._utils._rebuild_tensor_v2",
                                                        "collections.OrderedDict",
                                                        "torch.jit._pickle.build_intlist",
                                                        "torch.jit._pickle.build_doublelist",
                                                        "torch.jit._pickle.build_boollist",
                                                        "torch.jit._pickle.build_tensorlist",
                                                        "torch.jit._pickle.restore_type_tag",
                                                        "builtins.complex",
                                                        "torch.device"};
    if (auto type = storage_types().find(name); type != storage_types().end()) {
      push(Kind::scalar_type).integer = type->second;
      return;
    }
    // Classes of C++ extensions restore themselves from whatever the file says.
    bool scripted = module.rfind("__torch__", 0) == 0 && name.rfind("__torch__.torch.classes.", 0) != 0;
    if (!scripted && std::find(kFunctions.begin(), kFunctions.end(), name) == kFunctions.end())
      bad_input("{} uses {}, which is not supported", where_, printable(name));
    push(Kind::global).text = scripted ? "class" : name;
  }

  void storage() {
    Item* key = pop();
    expect(key->kind == Kind::tuple && key->items.size() == 5, "describes a storage wrongly");
    const std::vector<Item*>& part = key->items;
    expect(part[0]->kind == Kind::text && part[0]->text == "storage" && part[1]->kind == Kind::scalar_type &&
               part[2]->kind == Kind::text && part[3]->kind == Kind::text && part[4]->kind == Kind::integer,
           "describes a storage wrongly");
    std::int64_t items = part[4]->integer;
    std::int64_t width = part[1]->integer;
    expect(items >= 0 && items <= INT64_MAX / width, "has a storage of impossible size");
    std::optional<std::uint64_t> present = items == 0 ? 0 : storage_size_(part[2]->text);
    expect(present && static_cast<std::uint64_t>(items * width) <= *present, "has a tensor without its data");
    push(Kind::storage).integer = items;
  }

  std::vector<std::int64_t> integers(const Item& value) const {
    expect(value.kind == Kind::tuple && value.items.size() <= kMostDimensions, "has a tensor without a shape");
    std::vector<std::int64_t> result;
    for (const Item* item : value.items) {
      expect(item->kind == Kind::integer && item->integer >= 0, "has a tensor with a negative side");
      result.push_back(item->integer);
    }
    return result;
  }

  void rebuild_tensor(const std::vector<Item*>& part) {
    expect(part.size() == 6 && part[0]->kind == Kind::storage && part[1]->kind == Kind::integer &&
               part[4]->kind == Kind::boolean && part[5]->kind == Kind::none,
           "describes a tensor wrongly");
    std::vector<std::int64_t> sizes = integers(*part[2]);
    std::vector<std::int64_t> strides = integers(*part[3]);
    expect(sizes.size() == strides.size(), "has a tensor with another number of strides than sides");
    std::int64_t last = part[1]->integer;
    std::int64_t count = 1;
    bool fits = last >= 0;
    for (std::size_t d = 0; fits && d < sizes.size(); ++d) {
      std::int64_t span = 0;
      fits = !__builtin_mul_overflow(count, sizes[d], &count) &&
             (sizes[d] == 0 ||
              (!__builtin_mul_overflow(sizes[d] - 1, strides[d], &span) && !__builtin_add_overflow(last, span, &last)));
    }
    expect(fits && (count == 0 || last < part[0]->integer), "has a tensor larger than its data");
    push(Kind::tensor);
  }

  void build_list(const std::vector<Item*>& part, Kind kind) {
    expect(part.size() == 1 && part[0]->kind == Kind::list, "builds a list of something else");
    for (const Item* item : part[0]->items) expect(item->kind == kind, "has a list of mixed types");
    stack_.push_back(part[0]);
  }

  void restore_type(const std::vector<Item*>& part) {
    expect(part.size() == 2 && part[1]->kind == Kind::text && part[1]->text.size() <= kLongestTypeName,
           "names a type wrongly");
    expect(std::count(part[1]->text.begin(), part[1]->text.end(), '[') < kMostDepth, "names a type nested too deeply");
    bool list = part[1]->text.rfind("List", 0) == 0;
    expect(part[0]->kind == (list ? Kind::list : Kind::dict), "gives a value a type it does not have");
    stack_.push_back(part[0]);
  }

  void reduce() {
    Item* arguments = pop();
    Item* function = pop();
    expect(function->kind == Kind::global && arguments->kind == Kind::tuple, "calls what cannot be called");
    const std::vector<Item*>& part = arguments->items;
    const std::string& name = function->text;
    if (name == "torch._utils._rebuild_tensor_v2") {
      rebuild_tensor(part);
    } else if (name == "collections.OrderedDict") {
      push(Kind::none);
    } else if (name == "torch.jit._pickle.build_intlist") {
      build_list(part, Kind::integer);
    } else if (name == "torch.jit._pickle.build_doublelist") {
      build_list(part, Kind::real);
    } else if (name == "torch.jit._pickle.build_boollist") {
      build_list(part, Kind::boolean);
    } else if (name == "torch.jit._pickle.build_tensorlist") {
      build_list(part, Kind::tensor);
    } else if (name == "torch.jit._pickle.restore_type_tag") {
      restore_type(part);
    } else if (name == "builtins.complex") {
      expect(part.size() == 2 && part[0]->kind == Kind::real && part[1]->kind == Kind::real,
             "has a wrong complex number");
      push(Kind::other);
    } else if (name == "torch.device") {
      expect(part.size() == 1 && part[0]->kind == Kind::text, "names a device wrongly");
      push(Kind::other);
    } else {
      refuse("calls what cannot be called");
    }
  }

  void new_object() {
    Item* arguments = pop();
    Item* type = pop();
    expect(type->kind == Kind::global && type->text == "class" && arguments->kind == Kind::tuple &&
               arguments->items.empty(),
           "makes an object of something that is no class");
    push(Kind::instance);
  }

  void build() {
    Item* state = pop();
    Item* instance = pop();
    expect(instance->kind == Kind::instance && !instance->shared, "gives a state to something that is no new object");
    Item& object = push(Kind::object);
    object.depth = state->depth + 1;
    expect(object.depth <= kMostDepth, "is nested too deeply");
  }

  // False at the end of the pickle.
  bool step() {
    switch (byte()) {
      case '.':
        return false;
      case 'N':
        push(Kind::none);
        break;
      case 0x88:
      case 0x89:
        push(Kind::boolean);
        break;
      case 'K':
        push_integer(byte());
        break;
      case 'M':
        push_integer(number<std::uint16_t>());
        break;
      case 'J':
        push_integer(number<std::int32_t>());
        break;
      case 0x8a:
        expect(byte() == 8, "has an integer of unusual width");
        push_integer(number<std::int64_t>());
        break;
      case 'G':
        take(8);
        push(Kind::real);
        break;
      case 'X': {
        auto length = number<std::uint32_t>();
        push(Kind::text).text = std::string(take(length));
        break;
      }
      case ')':
        push(Kind::tuple);
        break;
      case ']':
        push(Kind::list);
        break;
      case '}':
        push(Kind::dict);
        break;
      case '(':
        marks_.push_back(stack_.size());
        break;
      case 't':
        push_tuple(pop_to_mark());
        break;
      case 0x85:
        push_tuple_of(1);
        break;
      case 0x86:
        push_tuple_of(2);
        break;
      case 0x87:
        push_tuple_of(3);
        break;
      case 'e': {
        std::vector<Item*> items = pop_to_mark();
        add(container(Kind::list), items);
        break;
      }
      case 'a': {
        Item* item = pop();
        add(container(Kind::list), {item});
        break;
      }
      case 'u': {
        std::vector<Item*> items = pop_to_mark();
        set_items(items);
        break;
      }
      case 's': {
        Item* value = pop();
        Item* key = pop();
        set_items({key, value});
        break;
      }
      case 'q':
        remember(byte());
        break;
      case 'r':
        remember(number<std::uint32_t>());
        break;
      case 'h':
        recall(byte());
        break;
      case 'j':
        recall(number<std::uint32_t>());
        break;
      case 'c':
        global();
        break;
      case 'Q':
        storage();
        break;
      case 'R':
        reduce();
        break;
      case 0x81:
        new_object();
        break;
      case 'b':
        build();
        break;
      default:
        refuse("has an instruction that TorchScript never writes");
    }
    return true;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  const StorageSize& storage_size_;
  const std::string& where_;
  std::deque<Item> values_;  // owns; containers point into it
  std::vector<Item*> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Item*> memo_;
};

}  // namespace

void check_pickle(std::string_view bytes, PickleRoot root, const StorageSize& storage_size, const std::string& where) {
  Reader(bytes, storage_size, where).run(root);
}

}  // namespace galvani::torchscript
