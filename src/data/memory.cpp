#include "galvani/data/memory.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "galvani/base/error.h"
#include "galvani/base/text.h"
#include "readers.h"

namespace galvani {
namespace {

struct LentData {
  Labelled about;
  SampleType type;
  at::Tensor values;
};

class LentTable {
 public:
  void put(const LentData& data) {
    std::lock_guard<std::mutex> lock(mutex_);
    table_.insert_or_assign(data.about.name, data);
  }
  void remove(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    table_.erase(name);
  }
  LentData get(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = table_.find(name);
    if (it == table_.end())
      bad_input("{}:{}: is in no memory of this process; give the arrays again under this name", kMemoryData,
                printable(name));
    return it->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, LentData> table_;
};

LentTable& lent_table() {
  static LentTable table;
  return table;
}

class MemorySource final : public Source {
 public:
  explicit MemorySource(LentData data) : data_(std::move(data)) {}

  std::int64_t size() const override { return data_.values.size(0); }
  at::Tensor labels() override { return data_.about.labels; }
  at::Tensor answers() override { return data_.about.answers; }
  SampleType type(std::int64_t /*row*/) override { return data_.type; }
  std::vector<std::string> class_names() const override { return data_.about.class_names; }

  // Rows that lie together are not copied.
  at::Tensor values(const std::vector<std::int64_t>& rows, std::int64_t /*like*/) override {
    bool together = true;
    for (std::size_t i = 1; i < rows.size(); ++i) together = together && rows[i] == rows[i - 1] + 1;
    if (together) return data_.values.narrow(0, rows[0], static_cast<std::int64_t>(rows.size()));
    return data_.values.index_select(0, at::tensor(rows, at::kLong));
  }

 private:
  LentData data_;
};

bool may_be_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

}  // namespace

void lend_data(const Labelled& about, const SampleType& type, const at::Tensor& values) {
  if (about.name.empty() || !std::all_of(about.name.begin(), about.name.end(), may_be_in_name))
    bad_usage("'{}' is no name for data: use letters, digits, '.', '_' and '-'", printable(about.name));
  bool fits = values.dim() > 0 && values.sizes().slice(1) == at::IntArrayRef(type.shape) &&
              values.scalar_type() == type.dtype() && values.is_contiguous();
  if (!fits) bad_input("{}: the inputs must be a contiguous array of {}", about.name, type.shape_text());
  if (values.size(0) == 0) bad_input("{}: there are no inputs in it", about.name);
  if (about.labels.dim() != 1 || about.labels.size(0) != values.size(0))
    bad_input("{}: has {}, but {}", about.name, counted(values.size(0), "input"),
              counted(about.labels.numel(), "label"));
  validate(about);
  lent_table().put({about, type, values});
}

void take_back_data(const std::string& name) {
  lent_table().remove(name);
}

std::unique_ptr<Source> open_memory(const std::string& name) {
  return std::make_unique<MemorySource>(lent_table().get(name));
}

}  // namespace galvani
