#include <ATen/ATen.h>
#include <pybind11/stl.h>

#include <functional>

#include "convert.h"
#include "galvani/base/error.h"
#include "galvani/fuzz/reader.h"
#include "galvani/fuzz/summary.h"

namespace galvani::python {
namespace {

// One declaration of what a row has, for rows as dictionaries and for columns.
template <class Record, class Visit>
void visit_mutant(const Record& r, Visit&& visit) {
  visit("id", r.id);
  visit("parent", r.parent);
  visit("seed", r.seed);
  visit("iteration", r.iteration);
  visit("slot", r.slot);
  visit("rule", r.rule);
  visit("label", r.label);
  visit("predicted", r.predicted);
  visit("confidence", r.confidence);
  visit("distinct", r.distinct);
  visit("sha256", r.sha256);
  visit("figures", r.figures);
  visit("metadata", r.metadata);
}

template <class Visit>
void visit_row(const FaultRecord& r, Visit&& visit) {
  visit_mutant(r, visit);
  visit("input", r.input);
  visit("file", r.file);
  visit("change", r.change);
}

template <class Visit>
void visit_row(const InputRecord& r, Visit&& visit) {
  visit_mutant(r, visit);
  visit("gain", r.gain);
  visit("fault", r.fault);
  visit("picks", r.picks);
}

template <class Visit>
void visit_row(const SeedRecord& r, Visit&& visit) {
  visit("id", r.id);
  visit("item", r.item);
  visit("label", r.label);
  visit("confidence", r.confidence);
  visit("gain", r.gain);
  visit("picks", r.picks);
  visit("sha256", r.sha256);
  visit("source", r.source);
}

template <class Visit>
void visit_row(const TimelinePoint& r, Visit&& visit) {
  visit("seconds", r.seconds);
  for_each_counter(r, [&](const char*, const char* name, const auto& value) { visit(name, value); });
}

template <class Record>
py::dict row_of(const Record& record) {
  py::dict row;
  visit_row(record, [&](const char* name, const auto& value) { row[name] = value; });
  return row;
}

template <class Record>
py::list rows_of_records(const std::vector<Record>& records) {
  py::list rows;
  for (const Record& record : records) rows.append(row_of(record));
  return rows;
}

// A NumPy array a column; texts as objects.
template <class Record>
py::dict columns_of(const std::vector<Record>& records) {
  py::dict columns;
  auto n = static_cast<std::int64_t>(records.size());
  Record first;
  visit_row(first, [&](const char* name, const auto& example) {
    using T = std::decay_t<decltype(example)>;
    std::string wanted = name;
    auto each = [&](const auto& put) {
      for (std::int64_t i = 0; i < n; ++i) {
        visit_row(records[static_cast<std::size_t>(i)], [&](const char* other, const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, T>) {
            if (wanted == other) put(i, value);
          }
        });
      }
    };
    if constexpr (std::is_same_v<T, std::string>) {
      py::list texts(n);
      each([&](std::int64_t i, const T& value) { texts[static_cast<std::size_t>(i)] = py::str(value); });
      columns[name] = py::module_::import("numpy").attr("array")(texts, py::dtype("O"));
    } else {
      py::array_t<T> values(n);
      each([&](std::int64_t i, const T& value) { values.mutable_at(i) = value; });
      columns[name] = values;
    }
  });
  return columns;
}

class OpenCampaign {
 public:
  explicit OpenCampaign(const std::string& folder) : folder_(folder) {
    Work work;
    reader_ = std::make_shared<const CampaignReader>(folder);
  }

  // Who reads keeps it, whoever closes it meanwhile.
  std::shared_ptr<const CampaignReader> reader() const {
    if (!reader_) bad_usage("{}: the campaign was closed", folder_);
    return reader_;
  }
  void close() { reader_.reset(); }
  bool closed() const { return reader_ == nullptr; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::shared_ptr<const CampaignReader> reader_;
};

// Rows of a kind, read while others may run.
template <class Record>
std::vector<Record> records_of(const OpenCampaign& campaign, const FaultFilter& filter) {
  std::shared_ptr<const CampaignReader> reader = campaign.reader();
  Work work;
  if constexpr (std::is_same_v<Record, FaultRecord>) return reader->faults(filter);
  if constexpr (std::is_same_v<Record, SeedRecord>) return reader->seeds();
  if constexpr (std::is_same_v<Record, TimelinePoint>) return reader->timeline();
  if constexpr (std::is_same_v<Record, InputRecord>) {
    std::vector<InputRecord> all;
    reader->for_each_input([&](const InputRecord& input) { all.push_back(input); });
    return all;
  }
}

FaultFilter filter_of(const py::dict& given) {
  FaultFilter filter;
  if (given.contains("label")) filter.label = given["label"].cast<std::int64_t>();
  if (given.contains("predicted")) filter.predicted = given["predicted"].cast<std::int64_t>();
  if (given.contains("kept_only")) filter.kept_only = given["kept_only"].cast<bool>();
  if (given.contains("distinct_only")) filter.distinct_only = given["distinct_only"].cast<bool>();
  if (given.contains("by_turns")) filter.by_turns = given["by_turns"].cast<bool>();
  if (given.contains("first")) filter.first = given["first"].cast<std::int64_t>();
  if (given.contains("most")) filter.most = given["most"].cast<std::int64_t>();
  return filter;
}

template <class Record>
py::object read(const OpenCampaign& campaign, const py::dict& filter, bool columns) {
  std::vector<Record> records = records_of<Record>(campaign, filter_of(filter));
  if (columns) return columns_of(records);
  return rows_of_records(records);
}

py::object fault_image(const OpenCampaign& campaign, std::int64_t id) {
  std::shared_ptr<const CampaignReader> reader = campaign.reader();
  at::Tensor image;
  {
    Work work;
    image = reader->image(reader->fault(id));
  }
  return to_array(image);
}

py::object input_image(const OpenCampaign& campaign, std::int64_t id) {
  std::shared_ptr<const CampaignReader> reader = campaign.reader();
  at::Tensor image;
  {
    Work work;
    image = reader->image(id);
  }
  return to_array(image);
}

}  // namespace

void bind_campaign(py::module_& module) {
  py::class_<OpenCampaign>(module, "Campaign")
      .def(py::init<const std::string&>())
      .def("close", &OpenCampaign::close)
      .def("closed", &OpenCampaign::closed)
      .def("folder", &OpenCampaign::folder)
      .def("faults", read<FaultRecord>)
      .def("inputs", read<InputRecord>)
      .def("seeds", read<SeedRecord>)
      .def("timeline", read<TimelinePoint>)
      .def("fault_image", fault_image)
      .def("input_image", input_image)
      .def("rules",
           [](const OpenCampaign& campaign, std::int64_t id) {
             std::shared_ptr<const CampaignReader> reader = campaign.reader();
             return reader->lineage(reader->fault(id)).rules;
           })
      .def("class_name",
           [](const OpenCampaign& campaign, std::int64_t label) { return campaign.reader()->class_name(label); })
      .def("classes", [](const OpenCampaign& campaign) { return campaign.reader()->classes(); })
      .def("settings", [](const OpenCampaign& campaign) {
        std::shared_ptr<const CampaignReader> reader = campaign.reader();
        const CampaignRecord& record = reader->record();
        py::dict result;
        for_each_setting(record.settings,
                         [&](const SettingInfo& info, const auto& value) { result[info.name] = value; });
        result["model"] = record.model;
        result["data"] = record.data;
        return result;
      });
}

}  // namespace galvani::python
