// Reads flatbuffers by field number, with every offset checked: enough for the few tables of a TFLite file.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace galvani {

class FlatTable {
 public:
  // The root of a file. `label` names it in errors and must outlive this, as must the bytes.
  static FlatTable root(std::string_view bytes, const std::string& label);

  // A number in field `id`; `fallback` if the field is not there.
  template <class Number>
  Number number(int id, Number fallback) const {
    std::size_t place = field(id);
    return place == 0 ? fallback : load<Number>(place);
  }
  bool has(int id) const { return field(id) != 0; }
  FlatTable table(int id) const;                // Error(bad_input) if it is not there, as all below
  std::vector<FlatTable> tables(int id) const;  // an absent vector is empty, as all below
  std::vector<std::int32_t> integers(int id) const;
  std::string_view bytes(int id) const;  // of a text or a vector of bytes

 private:
  FlatTable(std::string_view bytes, const std::string& label, std::size_t place);

  template <class Number>
  Number load(std::size_t place) const {
    Number value;
    std::memcpy(&value, take(place, sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(std::size_t place, std::size_t length) const;
  std::size_t field(int id) const;  // where it is; 0: not there
  std::size_t follow(std::size_t place) const;
  // The elements of the vector in a field, each of that many bytes; empty if it is not there. `start`: where they are.
  std::size_t vector(int id, std::size_t each, std::size_t& start) const;

  std::string_view all_;
  const std::string* label_;
  std::size_t place_;      // of the table
  std::size_t directory_;  // of its fields
  std::size_t directory_bytes_;
};

}  // namespace galvani
