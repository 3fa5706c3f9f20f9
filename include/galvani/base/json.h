// A JSON value to be written, and the only way JSON leaves the program: names and paths need not be UTF-8, JSON must
// be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace galvani {

// Written as in other languages: {{"name", "x"}, {"sizes", {1, 2}}} is an object, for all of its parts are pairs that
// begin with a text; {1, 2} is an array; so values become JSON unasked. Keys of objects are kept in order.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json>;

  Json() = default;  // null
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(std::nullptr_t) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(bool value) : value_(value) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(T value) : value_(static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(value)) {}
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(T value) : value_(static_cast<double>(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(const char* text) : value_(std::string(text)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(std::string_view text) : value_(std::string(text)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(std::string text) : value_(std::move(text)) {}
  template <class T>
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(const std::vector<T>& values) : value_(Array(values.begin(), values.end())) {}
  Json(std::initializer_list<Json> parts);

  static Json array() { return Json(Array()); }
  static Json object();
  static Json parse(std::string_view text);  // Error(bad_input) unless it is JSON

  // REQUIRES an object, or null, which becomes one.
  Json& operator[](const std::string& key);
  // REQUIRES an array, or null, which becomes one.
  void push_back(Json value);
  // REQUIRES an array with that many elements.
  Json& operator[](std::size_t index) { return std::get<Array>(value_).at(index); }

  using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object>;
  const Value& value() const { return value_; }

 private:
  Value value_ = nullptr;
};

// What is no UTF-8 becomes U+FFFD; characters that drive a terminal are written as \uXXXX.
std::string json_text(const Json& value, int indent = -1);
// As lines on standard output, at once: who reads them must not lose any when the process is killed.
void print_json(const Json& value, int indent = -1);

}  // namespace galvani
