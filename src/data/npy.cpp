#include "galvani/data/npy.h"

#include <ATen/ATen.h>

#include <cctype>
#include <cstring>
#include <optional>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "unpack.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::size_t kMaxHeader = 64 << 10;
constexpr std::size_t kMaxAxes = 32;

struct TypeInfo {
  std::string_view code;  // as NumPy writes it, without the byte order
  at::ScalarType read_as;
  std::size_t bytes;
  bool written;  // the code used to write `read_as`
};

constexpr TypeInfo kTypes[] = {
    {"b1", at::kBool, 1, true},  {"u1", at::kByte, 1, true}, {"i1", at::kChar, 1, true},  {"i2", at::kShort, 2, true},
    {"i4", at::kInt, 4, true},   {"i8", at::kLong, 8, true}, {"u2", at::kInt, 2, false},  {"u4", at::kLong, 4, false},
    {"u8", at::kLong, 8, false}, {"f2", at::kHalf, 2, true}, {"f4", at::kFloat, 4, true}, {"f8", at::kDouble, 8, true},
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

// Reads the Python literal {'descr': '<u1', 'fortran_order': False, 'shape': (2, 3), } and nothing more general.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  Header parse() {
    Header header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        if (peek() != '\'' && peek() != '"') bad_input("{}: is an array of structures, which cannot be read", what_);
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.shape = tuple();
        has_shape = true;
      } else {
        broken();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size() || !has_descr || !has_order || !has_shape) broken();
    return header;
  }

 private:
  [[noreturn]] void broken() const { bad_input("{}: its NPY header is malformed", what_); }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) broken();
  }
  std::string quoted() {
    char quote = peek();
    if (quote != '\'' && quote != '"') broken();
    std::size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) broken();
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    for (std::string_view word : {"True", "False"}) {
      if (peek() == word[0] && text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    }
    broken();
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> result;
    expect('(');
    while (!accept(')')) {
      if (std::isdigit(static_cast<unsigned char>(peek())) == 0 || result.size() == kMaxAxes) broken();
      std::uint64_t number = 0;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
        if (number >> 58 != 0) bad_input("{}: the sizes in its header are impossibly large", what_);
        number = number * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
      }
      accept('L');  // a Python 2 long
      result.push_back(number);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  std::string_view text_;
  const std::string& what_;
  std::size_t at_ = 0;
};

const TypeInfo& find_type(const Header& header, const std::string& what) {
  const std::string& descr = header.descr;
  if (descr.find('O') != std::string::npos)
    bad_input("{}: holds Python objects (a pickle), which are never loaded; save numbers instead", what);
  for (const TypeInfo& type : kTypes) {
    if (descr.size() == 3 && std::strchr("<>|=", descr[0]) != nullptr && descr.substr(1) == type.code) return type;
  }
  bad_input("{}: holds values of type '{}', which cannot be read", what, printable(descr, 20));
}

// Copies n values of `type`, turning big-endian ones round and widening unsigned ones.
void copy_values(const char* from, std::uint64_t n, const TypeInfo& type, bool big_endian, at::Tensor& to,
                 const std::string& what) {
  auto* out = static_cast<char*>(to.data_ptr());
  std::size_t width = to.element_size();
  if (width == type.bytes && !big_endian && type.code != "u8" && type.code != "b1") {
    std::memcpy(out, from, n * width);
    return;
  }
  bool is_unsigned = type.code[0] == 'u';
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint64_t value = 0;
    for (std::size_t b = 0; b < type.bytes; ++b) {
      std::size_t at = big_endian ? type.bytes - 1 - b : b;
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i * type.bytes + at])) << (8 * b);
    }
    // A bool of another bit pattern than 0 or 1 would be undefined behaviour later.
    if (type.code == "b1") value = value != 0 ? 1 : 0;
    if (is_unsigned && value >> 63 != 0) bad_input("{}: value {} does not fit a signed 64-bit integer", what, i);
    std::memcpy(out + i * width, &value, width);  // this machine is little-endian
  }
}

std::vector<std::int64_t> signed_sizes(const std::vector<std::uint64_t>& shape) {
  return {shape.begin(), shape.end()};
}

struct Layout {
  Header header;
  const TypeInfo* type;
  std::uint64_t offset;  // of the first value
  std::uint64_t count;   // of values
};

// What a file of `size` bytes that begins with `head` says of itself; the whole header must be in `head`, if it is an
// acceptable one.
Layout parse_layout(std::string_view head, std::uint64_t size, const std::string& what) {
  if (head.size() < 10 || head.substr(0, kMagic.size()) != kMagic) bad_input("{}: is not an NPY file", what);
  auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(head[i])); };
  std::size_t major = byte(6);
  if (major < 1 || major > 3) bad_input("{}: is NPY version {}, but 1 to 3 are known", what, major);
  std::size_t start = major == 1 ? 10 : 12;
  if (head.size() < start) bad_input("{}: ends inside its header", what);
  std::size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxHeader)
    bad_input("{}: its header is {} bytes long, more than the {} accepted", what, length, kMaxHeader);
  if (head.size() - start < length) bad_input("{}: ends inside its header", what);
  Layout layout{HeaderParser(head.substr(start, length), what).parse(), nullptr, start + length, 0};
  layout.type = &find_type(layout.header, what);

  auto count = product(layout.header.shape);
  auto payload = count ? product({*count, layout.type->bytes}) : std::nullopt;
  // A zero-sized axis makes any product zero, so the other sizes are bounded one by one.
  for (std::uint64_t axis : layout.header.shape) {
    if (axis >> 48 != 0) payload.reset();
  }
  if (!payload) bad_input("{}: the sizes in its header are impossibly large", what);
  layout.count = *count;
  std::uint64_t rest = size - layout.offset;
  if (*payload != rest)
    bad_input("{}: its header says {} bytes of values follow, but there are {}", what, *payload, rest);
  return layout;
}

}  // namespace

at::Tensor parse_npy(std::string_view bytes, const std::string& what) {
  Layout layout = parse_layout(bytes, bytes.size(), what);
  require_memory(what, layout.count * at::elementSize(layout.type->read_as));
  std::vector<std::int64_t> sizes = signed_sizes(layout.header.shape);
  if (layout.header.fortran_order) std::reverse(sizes.begin(), sizes.end());
  at::Tensor result = at::empty(sizes, layout.type->read_as);
  if (layout.count > 0)
    copy_values(bytes.data() + layout.offset, layout.count, *layout.type, layout.header.descr[0] == '>', result, what);
  if (!layout.header.fortran_order) return result;
  std::vector<std::int64_t> reversed;
  for (std::int64_t axis = result.dim() - 1; axis >= 0; --axis) reversed.push_back(axis);
  return result.permute(reversed).contiguous();
}

NpyLayout read_npy_layout(const fs::path& path) {
  std::error_code error;
  std::uint64_t size = fs::file_size(path, error);
  if (error) bad_input("{}: cannot be read: {}", path.string(), error.message());
  Layout layout = parse_layout(read_head(path, kMaxHeader + 12), size, path.string());
  return {layout.type->read_as, signed_sizes(layout.header.shape), layout.offset, layout.header.fortran_order};
}

std::string npy_bytes(const at::Tensor& tensor) {
  const TypeInfo* type = nullptr;
  for (const TypeInfo& candidate : kTypes) {
    if (candidate.written && candidate.read_as == tensor.scalar_type()) type = &candidate;
  }
  if (type == nullptr)
    fail(ErrorCode::internal, "tensors of type {} cannot be written as NPY", toString(tensor.scalar_type()));
  std::string shape;
  for (std::int64_t size : tensor.sizes()) shape += std::to_string(size) + ", ";
  // One axis is written (5,), two (5, 6).
  if (tensor.dim() == 1) shape.pop_back();
  if (tensor.dim() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   type->bytes == 1 ? '|' : '<', type->code, shape);
  // NumPy aligns the values to 64 bytes and ends the header with a newline.
  std::size_t total = (kMagic.size() + 4 + header.size() + 1 + 63) / 64 * 64;
  header.resize(total - kMagic.size() - 4 - 1, ' ');
  header += '\n';
  std::string result(kMagic);
  result += '\x01';
  result += '\0';
  result += static_cast<char>(header.size() & 0xff);
  result += static_cast<char>(header.size() >> 8);
  result += header;
  at::Tensor flat = tensor.contiguous().cpu();
  if (flat.numel() > 0) result.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  return result;
}

at::Tensor read_npy(const fs::path& path) {
  std::error_code error;
  std::uint64_t size = fs::file_size(path, error);
  if (!error) require_memory(path.string(), size * 2);
  return parse_npy(read_file(path), path.string());
}

std::map<std::string, at::Tensor> read_npz(const fs::path& path) {
  std::map<std::string, at::Tensor> result;
  std::error_code error;
  std::uint64_t size = fs::file_size(path, error);
  if (error) bad_input("{}: cannot be read: {}", path.string(), error.message());
  if (read_head(path, 2) != "PK") bad_input("{}: is not an NPZ file (a zip archive of NPY files)", path.string());
  constexpr std::uint64_t kMaxUnpacked = std::uint64_t{4} << 30;
  std::uint64_t limit = std::min(std::max(size * 2, kMaxUnpacked), size * kMaxExpansion);
  auto is_array = [](const std::string& name) { return name.size() > 4 && name.substr(name.size() - 4) == ".npy"; };
  read_archive(path, limit, is_array, [&](const std::string& name, const std::string& bytes) {
    std::string key = name.substr(0, name.size() - 4);
    require_memory(path.string(), bytes.size());
    at::Tensor tensor = parse_npy(bytes, path.string() + " (" + printable(key) + ")");
    if (!result.emplace(key, tensor).second)
      bad_input("{}: holds two arrays called '{}'", path.string(), printable(key));
  });
  return result;
}

void write_npy(const fs::path& path, const at::Tensor& tensor) {
  write_file(path, npy_bytes(tensor));
}

void write_npz(const fs::path& path, const NamedTensors& tensors, Compression compression) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [name, tensor] : tensors) entries.emplace_back(name + ".npy", npy_bytes(tensor));
  write_file(path, zip_bytes(entries, compression == Compression::deflate));
}

}  // namespace galvani
