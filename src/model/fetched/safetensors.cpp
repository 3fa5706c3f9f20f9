#include "model/fetched/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/nesting.h"

namespace galvani {
namespace {

using nlohmann::json;

const std::map<std::string, at::ScalarType> kNumberTypes = {
    {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf}, {"BF16", at::kBFloat16}, {"I64", at::kLong},
    {"I32", at::kInt},    {"I16", at::kShort}, {"I8", at::kChar},  {"U8", at::kByte}};

}  // namespace

SafeTensors::SafeTensors(std::string_view bytes, std::string label) : label_(std::move(label)) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) bad_input("{}: is too short for a safetensors file", label_);
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > bytes.size() - sizeof length)
    bad_input("{}: its header is said to be {} bytes long, but the file has {}", label_, length, bytes.size());
  data_ = bytes.substr(sizeof length + length);
  json header = parse_json<json>(bytes.substr(sizeof length, length));
  if (!header.is_object()) bad_input("{}: its header is no JSON object", label_);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      auto type = kNumberTypes.find(entry.at("dtype").get<std::string>());
      if (type == kNumberTypes.end()) bad_input("{}: tensor '{}' is of an unknown type", label_, printable(name));
      Place found{type->second, entry.at("shape").get<std::vector<std::int64_t>>(), 0};
      auto range = entry.at("data_offsets").get<std::vector<std::uint64_t>>();
      std::uint64_t size = c10::elementSize(found.type);
      for (std::int64_t side : found.shape) {
        if (side < 0 || (side > 0 && size > data_.size() / static_cast<std::uint64_t>(side)))
          bad_input("{}: tensor '{}' is larger than the file", label_, printable(name));
        size *= static_cast<std::uint64_t>(side);
      }
      if (range.size() != 2 || range[0] > range[1] || range[1] > data_.size() || range[1] - range[0] != size)
        bad_input("{}: the place of tensor '{}' does not fit its shape or the file", label_, printable(name));
      found.begin = range[0];
      places_.emplace(name, std::move(found));
    } catch (const json::exception&) {
      bad_input("{}: the header's entry of tensor '{}' is wrong", label_, printable(name));
    }
  }
}

const SafeTensors::Place& SafeTensors::place(const std::string& name) const {
  auto found = places_.find(name);
  if (found == places_.end()) bad_input("{}: holds no tensor '{}'", label_, name);
  return found->second;
}

std::vector<std::int64_t> SafeTensors::shape(const std::string& name) const {
  return place(name).shape;
}

at::Tensor SafeTensors::get(const std::string& name, const std::vector<std::int64_t>& shape) const {
  const Place& found = place(name);
  if (found.shape != shape)
    bad_input("{}: tensor '{}' is [{}], not [{}]", label_, name, fmt::join(found.shape, ", "), fmt::join(shape, ", "));
  at::Tensor value = at::empty(shape, found.type);
  std::memcpy(value.data_ptr(), data_.data() + found.begin, value.nbytes());
  return value.to(at::kFloat);
}

}  // namespace galvani
