#include "mutate_archive.h"

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/istream_adapter.h>

#include <sstream>
#include <vector>

#include "mutate_bytes.h"
#include "mutate_code.h"

namespace galvani {
namespace {

struct Record {
  std::string name;
  std::string content;
};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Opcodes put where others were: the stack and the memo no longer hold what the rest expects.
std::string mutate_pickle(const std::string& bytes, Rng& rng) {
  if (rng.chance(0.4) || bytes.empty()) return mutate(bytes, rng);
  static const std::string kOpcodes = "\x80(.}]\x81)tb(KMJGX\x8aqrhjsuaeNQRc\x88\x89\x85\x86\x87lI1020";
  std::string result = bytes;
  std::uint64_t rounds = 1 + rng.below(4);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::size_t at = rng.below(result.size());
    char opcode = kOpcodes[rng.below(kOpcodes.size())];
    switch (rng.below(3)) {
      case 0:
        result[at] = opcode;
        break;
      case 1:
        result.insert(at, 1, opcode);
        break;
      default:
        result.erase(at, 1);
    }
    if (result.empty()) result = ".";
  }
  return result;
}

std::vector<Record> read(const std::string& bytes) {
  std::istringstream stream(bytes);
  caffe2::serialize::PyTorchStreamReader reader(std::make_unique<caffe2::serialize::IStreamAdapter>(&stream));
  std::vector<Record> records;
  for (const std::string& name : reader.getAllRecords()) {
    auto [data, size] = reader.getRecord(name);
    records.push_back({name, std::string(static_cast<const char*>(data.get()), size)});
  }
  return records;
}

}  // namespace

std::string mutate_archive(const std::string& bytes, Rng& rng) {
  std::vector<Record> records = read(bytes);
  std::vector<std::size_t> code;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (ends_with(records[i].name, ".py")) code.push_back(i);
  }
  // Code is where most can be asked of a reader.
  Record& victim = records[rng.chance(0.7) && !code.empty() ? code[rng.below(code.size())] : rng.below(records.size())];
  if (ends_with(victim.name, ".py"))
    victim.content = mutate_code(victim.content, rng);
  else if (ends_with(victim.name, ".pkl"))
    victim.content = mutate_pickle(victim.content, rng);
  else if (rng.chance(0.1))
    victim.name = records[0].name + "2";
  else
    victim.content = mutate(victim.content, rng);
  std::string result;
  caffe2::serialize::PyTorchStreamWriter writer([&result](const void* data, std::size_t n) {
    result.append(static_cast<const char*>(data), n);
    return n;
  });
  for (const Record& record : records) {
    if (record.name != "version" && record.name != ".data/version")
      writer.writeRecord(record.name, record.content.data(), record.content.size());
  }
  writer.writeEndOfFile();
  return result;
}

}  // namespace galvani
