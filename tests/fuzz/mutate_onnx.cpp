#include "mutate_onnx.h"

#include <google/protobuf/message.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "mutate_bytes.h"

namespace galvani {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Site {
  Message* message;
  const FieldDescriptor* field;
};

void collect(Message& message, std::vector<Site>& sites, std::vector<std::string>& names) {
  const Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    sites.push_back({&message, field});
    int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      for (int i = 0; i < count; ++i)
        names.push_back(field->is_repeated() ? reflection->GetRepeatedString(message, field, i)
                                             : reflection->GetString(message, field));
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    for (int i = 0; i < count; ++i)
      collect(field->is_repeated() ? *reflection->MutableRepeatedMessage(&message, field, i)
                                   : *reflection->MutableMessage(&message, field),
              sites, names);
  }
}

std::int64_t damaged_integer(std::int64_t value, Rng& rng) {
  constexpr std::int64_t kBoundaries[] = {
      0,         1,        -1,   2,     3,       7,         -2,        64,
      255,       1000,     4096, 65535, 1 << 20, INT32_MAX, INT32_MIN, std::int64_t{1} << 32,
      INT64_MAX, INT64_MIN};
  switch (rng.below(4)) {
    case 0:
      return value == INT64_MAX ? value : value + 1;
    case 1:
      return value == INT64_MIN ? value : -value;
    default:
      return kBoundaries[rng.below(std::size(kBoundaries))];
  }
}

float damaged_real(float value, Rng& rng) {
  constexpr float kBoundaries[] = {
      0, -1, 1e-30F, 1e30F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
  return rng.chance(0.2) ? -value : kBoundaries[rng.below(std::size(kBoundaries))];
}

std::string damaged_text(const std::string& text, bool name, const std::vector<std::string>& names, Rng& rng) {
  if (rng.chance(0.1)) return "";
  return name && rng.chance(0.7) ? names[rng.below(names.size())] : mutate(text, rng);
}

// The numbers of a tensor: one of them replaced, as many bytes as before, so that the shape still fits.
std::string damaged_data(const std::string& data, Rng& rng) {
  std::size_t width = data.size() % 8 == 0 && rng.chance(0.7) ? 8 : 4;
  if (data.size() < width || rng.chance(0.1)) return mutate(data, rng);
  std::string result = data;
  std::size_t at = rng.below(data.size() / width) * width;
  std::int64_t value = 0;
  std::memcpy(&value, data.data() + at, width);
  value = damaged_integer(value, rng);
  std::memcpy(result.data() + at, &value, width);
  return result;
}

// Sizes and the like: where damage goes deepest.
bool is_number(const Site& site) {
  return site.field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 || site.field->name() == "raw_data";
}

void damage_value(const Site& site, const std::vector<std::string>& names, Rng& rng) {
  Message& m = *site.message;
  const FieldDescriptor* f = site.field;
  const Reflection* r = m.GetReflection();
  bool many = f->is_repeated();
  int i = many ? static_cast<int>(rng.below(static_cast<std::uint64_t>(r->FieldSize(m, f)))) : 0;
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      if (many)
        r->SetRepeatedInt32(&m, f, i, static_cast<std::int32_t>(damaged_integer(r->GetRepeatedInt32(m, f, i), rng)));
      else
        r->SetInt32(&m, f,
                    rng.chance(0.7) ? static_cast<std::int32_t>(rng.below(20))
                                    : static_cast<std::int32_t>(damaged_integer(r->GetInt32(m, f), rng)));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      if (many)
        r->SetRepeatedInt64(&m, f, i, damaged_integer(r->GetRepeatedInt64(m, f, i), rng));
      else
        r->SetInt64(&m, f, damaged_integer(r->GetInt64(m, f), rng));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      if (many)
        r->SetRepeatedFloat(&m, f, i, damaged_real(r->GetRepeatedFloat(m, f, i), rng));
      else
        r->SetFloat(&m, f, damaged_real(r->GetFloat(m, f), rng));
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      r->SetEnumValue(&m, f, static_cast<int>(rng.below(16)));
      break;
    case FieldDescriptor::CPPTYPE_STRING: {
      if (f->name() == "raw_data") {
        r->SetString(&m, f, damaged_data(r->GetString(m, f), rng));
        break;
      }
      bool name = f->type() == FieldDescriptor::TYPE_STRING;
      if (many)
        r->SetRepeatedString(&m, f, i, damaged_text(r->GetRepeatedString(m, f, i), name, names, rng));
      else
        r->SetString(&m, f, damaged_text(r->GetString(m, f), name, names, rng));
      break;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!many)
        r->ClearField(&m, f);
      else
        r->SwapElements(&m, f, i, static_cast<int>(rng.below(static_cast<std::uint64_t>(r->FieldSize(m, f)))));
      break;
    default:
      r->ClearField(&m, f);
  }
}

// Adds a copy of the last element, or many.
void repeat_element(const Site& site, Rng& rng) {
  Message& m = *site.message;
  const FieldDescriptor* f = site.field;
  const Reflection* r = m.GetReflection();
  int last = r->FieldSize(m, f) - 1;
  int copies = rng.chance(0.2) ? 1000 : 1;
  for (int i = 0; i < copies; ++i) {
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        r->AddInt64(&m, f, r->GetRepeatedInt64(m, f, last));
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        r->AddInt32(&m, f, r->GetRepeatedInt32(m, f, last));
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        r->AddFloat(&m, f, r->GetRepeatedFloat(m, f, last));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        r->AddString(&m, f, r->GetRepeatedString(m, f, last));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        r->AddMessage(&m, f)->CopyFrom(r->GetRepeatedMessage(m, f, last));
        break;
      default:
        return;
    }
  }
}

}  // namespace

void mutate_onnx(::onnx::ModelProto& model, Rng& rng) {
  std::uint64_t rounds = 1 + rng.below(4);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::vector<Site> sites;
    std::vector<std::string> names;
    collect(model, sites, names);
    if (sites.empty() || names.empty()) return;
    Site site = sites[rng.below(sites.size())];
    bool number = rng.chance(0.6);
    for (int tries = 0; tries < 50 && is_number(site) != number; ++tries) site = sites[rng.below(sites.size())];
    std::uint64_t kind = rng.below(10);
    const Reflection* reflection = site.message->GetReflection();
    if (kind == 0) {
      if (site.field->is_repeated())
        reflection->RemoveLast(site.message, site.field);
      else
        reflection->ClearField(site.message, site.field);
    } else if (kind == 1 && site.field->is_repeated()) {
      repeat_element(site, rng);
    } else {
      damage_value(site, names, rng);
    }
  }
}

}  // namespace galvani
