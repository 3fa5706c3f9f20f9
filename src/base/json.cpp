#include "galvani/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/nesting.h"
#include "galvani/base/utf8.h"

namespace galvani {
namespace {

nlohmann::json to_library(const Json& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::json {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Json::Array>) {
          nlohmann::json array = nlohmann::json::array();
          for (const Json& part : held) array.push_back(to_library(part));
          return array;
        } else if constexpr (std::is_same_v<Held, Json::Object>) {
          nlohmann::json object = nlohmann::json::object();
          for (const auto& [key, part] : held) object[key] = to_library(part);
          return object;
        } else {
          return held;
        }
      },
      value.value());
}

Json from_library(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::array: {
      Json array = Json::array();
      for (const nlohmann::json& part : value) array.push_back(from_library(part));
      return array;
    }
    case nlohmann::json::value_t::object: {
      Json object = Json::object();
      for (const auto& [key, part] : value.items()) object[key] = from_library(part);
      return object;
    }
    case nlohmann::json::value_t::string:
      return value.get<std::string>();
    case nlohmann::json::value_t::boolean:
      return value.get<bool>();
    case nlohmann::json::value_t::number_integer:
      return value.get<std::int64_t>();
    case nlohmann::json::value_t::number_unsigned:
      return value.get<std::uint64_t>();
    case nlohmann::json::value_t::number_float:
      return value.get<double>();
    default:
      return nullptr;
  }
}

bool is_pair(const Json& part) {
  const auto* array = std::get_if<Json::Array>(&part.value());
  return array != nullptr && array->size() == 2 && std::holds_alternative<std::string>(array->front().value());
}

}  // namespace

Json::Json(std::initializer_list<Json> parts) {
  if (!std::all_of(parts.begin(), parts.end(), is_pair)) {
    value_ = Array(parts);
    return;
  }
  Object object;
  for (const Json& part : parts) {
    const auto& pair = std::get<Array>(part.value_);
    object.emplace(std::get<std::string>(pair[0].value_), pair[1]);
  }
  value_ = std::move(object);
}

Json Json::object() {
  Json result;
  result.value_ = Object();
  return result;
}

Json Json::parse(std::string_view text) {
  auto parsed = parse_json<nlohmann::json>(text);
  if (parsed.is_discarded()) bad_input("'{}' is not JSON", printable(text));
  return from_library(parsed);
}

Json& Json::operator[](const std::string& key) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Object();
  return std::get<Object>(value_)[key];
}

void Json::push_back(Json value) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Array();
  std::get<Array>(value_).push_back(std::move(value));
}

std::string json_text(const Json& value, int indent) {
  std::string dumped =
      to_library(value).dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
  std::string result;
  result.reserve(dumped.size());
  for (std::string_view rest = dumped; !rest.empty();) {
    Character c = first_character(rest);
    // Between the strings there are line ends; inside them the library has escaped what is below U+0020.
    if (c.code >= 0x7f && drives_terminal(c.code)) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned int>(c.code));
    } else {
      result += rest.substr(0, c.length);
    }
    rest.remove_prefix(c.length);
  }
  return result;
}

void print_json(const Json& value, int indent) {
  fmt::print("{}\n", json_text(value, indent));
  std::fflush(stdout);
}

}  // namespace galvani
