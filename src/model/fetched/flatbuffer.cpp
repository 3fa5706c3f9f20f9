#include "model/fetched/flatbuffer.h"

#include "galvani/base/error.h"

namespace galvani {

FlatTable FlatTable::root(std::string_view bytes, const std::string& label) {
  std::uint32_t place = 0;
  if (bytes.size() < sizeof place) bad_input("{}: is cut short", label);
  std::memcpy(&place, bytes.data(), sizeof place);
  return {bytes, label, place};
}

FlatTable::FlatTable(std::string_view bytes, const std::string& label, std::size_t place)
    : all_(bytes), label_(&label), place_(place) {
  // A table begins with the distance back to its directory: its length, the table's, and where each field lies.
  auto back = static_cast<std::int64_t>(load<std::int32_t>(place));
  auto directory = static_cast<std::int64_t>(place) - back;
  if (directory < 0) bad_input("{}: has a table out of place", label);
  directory_ = static_cast<std::size_t>(directory);
  directory_bytes_ = load<std::uint16_t>(directory_);
  take(directory_, directory_bytes_);
}

std::string_view FlatTable::take(std::size_t place, std::size_t length) const {
  if (place > all_.size() || length > all_.size() - place)
    bad_input("{}: is cut short, or points outside itself", *label_);
  return all_.substr(place, length);
}

std::size_t FlatTable::field(int id) const {
  std::size_t entry = 4 + 2 * static_cast<std::size_t>(id);
  if (entry + 2 > directory_bytes_) return 0;
  auto offset = load<std::uint16_t>(directory_ + entry);
  return offset == 0 ? 0 : place_ + offset;
}

std::size_t FlatTable::follow(std::size_t place) const {
  return place + load<std::uint32_t>(place);
}

FlatTable FlatTable::table(int id) const {
  std::size_t place = field(id);
  if (place == 0) bad_input("{}: a table lacks its field {}", *label_, id);
  return {all_, *label_, follow(place)};
}

std::size_t FlatTable::vector(int id, std::size_t each, std::size_t& start) const {
  std::size_t place = field(id);
  if (place == 0) return 0;
  place = follow(place);
  std::size_t count = load<std::uint32_t>(place);
  start = place + sizeof(std::uint32_t);
  take(start, count * each);
  return count;
}

std::vector<FlatTable> FlatTable::tables(int id) const {
  std::size_t start = 0;
  std::size_t count = vector(id, sizeof(std::uint32_t), start);
  std::vector<FlatTable> result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(FlatTable(all_, *label_, follow(start + i * sizeof(std::uint32_t))));
  return result;
}

std::vector<std::int32_t> FlatTable::integers(int id) const {
  std::size_t start = 0;
  std::vector<std::int32_t> result(vector(id, sizeof(std::int32_t), start));
  if (!result.empty()) std::memcpy(result.data(), all_.data() + start, result.size() * sizeof(std::int32_t));
  return result;
}

std::string_view FlatTable::bytes(int id) const {
  std::size_t start = 0;
  std::size_t count = vector(id, 1, start);
  return all_.substr(start, count);
}

}  // namespace galvani
