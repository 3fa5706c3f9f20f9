// Our own binary files: numbers and arrays one after the other, in an envelope that says what they are and shows
// damage.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace galvani {

class ArchiveWriter {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const char* text) { put(std::string_view(text)); }
  template <class T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_arithmetic_v<T>);
    put(static_cast<std::uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what a writer wrote. Whatever does not fit the bytes at hand is an Error(bad_input) that names `file`.
class ArchiveReader {
 public:
  ArchiveReader(std::string_view bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {}

  template <class T>
  T get() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string get_text(std::size_t most = 1 << 20);
  // Exactly `count` of them, or any number the file holds.
  template <class T>
  std::vector<T> get_vector(std::uint64_t count = kAnyCount) {
    static_assert(std::is_arithmetic_v<T>);
    auto n = get<std::uint64_t>();
    if (n > bytes_.size() / sizeof(T)) broken("is cut short");
    if (count != kAnyCount && n != count) broken("holds an array of the wrong length");
    std::vector<T> values(n);
    std::string_view raw = take(n * sizeof(T));
    if (n > 0) std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
  static constexpr std::uint64_t kAnyCount = std::numeric_limits<std::uint64_t>::max();

  void expect_end() const;
  std::string_view rest() const { return bytes_; }  // what was not read yet
  const std::string& file() const { return file_; }
  [[noreturn]] void broken(std::string_view what) const;

 private:
  std::string_view take(std::size_t n);

  std::string_view bytes_;
  std::string file_;
};

// Writes `payload` with its kind ("profile"), the version of its content and a hash of all of it.
void write_sealed(const std::filesystem::path& path, std::string_view kind, std::uint32_t version,
                  std::string_view payload);
std::string sealed_bytes(std::string_view kind, std::uint32_t version, std::string_view payload);
// The payload; a file of another kind, of a version we do not know, or a damaged one is refused with a sentence. Where
// `oldest` is given, it holds the oldest version that can be read, and then the file's.
std::string read_sealed(const std::filesystem::path& path, std::string_view kind, std::uint32_t version,
                        std::uint32_t* oldest = nullptr);

}  // namespace galvani
