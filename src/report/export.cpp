#include "galvani/report/export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "galvani/base/interrupt.h"
#include "galvani/base/output_file.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/data/export.h"
#include "galvani/data/npy.h"

namespace galvani {
namespace {

// What is written of a fault and of an output.
bool is_fault(const FaultRecord&) {
  return true;
}
bool is_fault(const InputRecord& input) {
  return input.fault;
}
bool is_kept(const FaultRecord& fault) {
  return fault.kept();
}
bool is_kept(const InputRecord&) {
  return true;
}
std::string file_of(const FaultRecord& fault) {
  return fault.file;
}
std::string file_of(const InputRecord&) {
  return "";
}

// Calls `visit` with every mutant that was asked for, in order.
template <class Visit>
void for_each_mutant(const CampaignReader& reader, const ExportOptions& options, Visit&& visit) {
  if (!options.outputs) {
    FaultFilter filter;
    filter.distinct_only = options.distinct;
    filter.kept_only = options.kept;
    reader.for_each_fault(filter, [&](const FaultRecord& fault) {
      check_interrupt();
      visit(fault);
    });
  } else {
    reader.for_each_input([&](const InputRecord& input) {
      check_interrupt();
      if (input.distinct || !options.distinct) visit(input);
    });
  }
}

// Rows are written as they are read, for there may be millions. Returns how many; with none there is no file. A
// campaign that goes on meanwhile has more than `most` of them.
std::int64_t write_mutants_csv(const CampaignReader& reader, const ExportOptions& options,
                               const std::filesystem::path& path,
                               std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < reader.classes(); ++i) names.push_back(csv_name(reader.class_name(i)));
  auto name = [&](std::int64_t label) {
    return label >= 0 && label < reader.classes() ? names[static_cast<std::size_t>(label)]
                                                  : csv_name(reader.class_name(label));
  };
  std::optional<OutputFile> file;
  std::int64_t rows = 0;
  for_each_mutant(reader, options, [&](const auto& r) {
    if (rows == most) return;
    if (rows++ == 0)
      file.emplace(path).write(
          "id,label,label_name,predicted,predicted_name,confidence,fault,kept,distinct,seed,seed_name,iteration,slot,"
          "steps,"
          "lineage,sha256,file\n");
    std::vector<std::string> rules = reader.lineage(r).rules;
    file->write(fmt::format("{},{},{},{},{},{:.6f},{:d},{:d},{:d},{},{},{},{},{},{},{},{}\n", r.id, r.label,
                            name(r.label), r.predicted, name(r.predicted), r.confidence, is_fault(r), is_kept(r),
                            r.distinct, r.seed, csv_name(reader.seed_name(r.seed)), r.iteration, r.slot, rules.size(),
                            csv_name(fmt::format("{}", fmt::join(rules, " | "))), csv_name(r.sha256),
                            csv_name(file_of(r))));
  });
  if (file) file->commit();
  return rows;
}

// What is needed of a mutant to write its image.
struct ExportRow {
  std::int64_t id = 0;
  std::int64_t label = 0;
  std::int64_t predicted = 0;
  std::int64_t seed = 0;
  double confidence = 0;
  bool fault = false;
  std::string file;    // of a fault
  std::string sha256;  // of the pixels
};

std::vector<ExportRow> collect(const CampaignReader& reader, const ExportOptions& options) {
  std::vector<ExportRow> rows;
  for_each_mutant(reader, options, [&](const auto& r) {
    rows.push_back({r.id, r.label, r.predicted, r.seed, r.confidence, is_fault(r), file_of(r), r.sha256});
  });
  return rows;
}

template <class Get>
at::Tensor column(const std::vector<ExportRow>& rows, Get&& get) {
  std::vector<std::int64_t> values;
  for (const ExportRow& row : rows) values.push_back(get(row));
  return at::tensor(values, at::kLong);
}

// A fault's image comes from its file, an output's from the store.
at::Tensor image_of(const CampaignReader& reader, const ExportRow& row, const ExportOptions& options) {
  if (options.outputs) return reader.image(row.id);
  FaultRecord fault;
  fault.id = row.id;
  fault.label = row.label;
  fault.predicted = row.predicted;
  fault.file = row.file;
  fault.sha256 = row.sha256;
  return reader.image(fault);
}

DataView view_of(const CampaignReader& reader, const std::vector<ExportRow>& rows, const ExportOptions& options,
                 Progress& progress) {
  Labelled about;
  about.name = reader.folder().string();
  about.labels = column(rows, [](const ExportRow& row) { return row.label; });
  for (std::int64_t i = 0; i < reader.classes(); ++i) about.class_names.push_back(reader.class_name(i));
  auto fetch = [&](const std::vector<std::int64_t>& wanted) {
    std::vector<at::Tensor> images(wanted.size());
    auto take = [&](std::size_t i) {
      images[i] = image_of(reader, rows[static_cast<std::size_t>(wanted[i])], options);
    };
    auto count = static_cast<std::int64_t>(wanted.size());
    if (options.outputs) {
      for (std::size_t i = 0; i < images.size(); ++i) take(i);
    } else {
      workers().run(count, [&](std::int64_t i, int) { take(static_cast<std::size_t>(i)); });
    }
    progress.advance(count);
    return at::stack(images);
  };
  return {about, reader.type(), fetch};
}

void write_npz_rows(const Dataset& data, const std::vector<ExportRow>& rows, const std::filesystem::path& path) {
  bool sounds = data.type().kind == SampleKind::audio;
  at::Tensor inputs = sounds                 ? data.images
                      : data.channels() == 1 ? data.images.squeeze(1)
                                             : data.images.permute({0, 2, 3, 1}).contiguous();
  std::vector<double> confidence;
  for (const ExportRow& row : rows) confidence.push_back(row.confidence);
  write_npz(path,
            {{sounds ? "sounds" : "images", inputs},
             {"labels", data.labels},
             {"predicted", column(rows, [](const ExportRow& r) { return r.predicted; })},
             {"confidence", at::tensor(confidence, at::kDouble)},
             {"id", column(rows, [](const ExportRow& r) { return r.id; })},
             {"seed", column(rows, [](const ExportRow& r) { return r.seed; })},
             {"fault", column(rows, [](const ExportRow& r) { return r.fault ? 1 : 0; })}},
            Compression::deflate);
}

std::int64_t write_images(const CampaignReader& reader, const ExportOptions& options,
                          const std::filesystem::path& output) {
  std::vector<ExportRow> rows = collect(reader, options);
  auto count = static_cast<std::int64_t>(rows.size());
  if (rows.empty()) return count;
  Progress progress("exporting", count, reader.type().noun());
  DataView data = view_of(reader, rows, options, progress);
  if (options.form == ExportForm::npz) {
    write_npz_rows(data.load(), rows, output);
  } else {
    write_sample_folder(data, output, [&](const std::filesystem::path& folder) {
      write_mutants_csv(reader, options, folder / "mutants.csv", count);
    });
  }
  return count;
}

}  // namespace

std::int64_t export_campaign(const CampaignReader& reader, const ExportOptions& options,
                             const std::filesystem::path& output) {
  return options.form == ExportForm::csv ? write_mutants_csv(reader, options, output)
                                         : write_images(reader, options, output);
}

}  // namespace galvani
