#include "galvani/data/export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "campaign_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/data/npy.h"
#include "verb.h"

namespace galvani::cli {
namespace {

struct Flags {
  std::string folder;
  std::string form = "folder";
  std::string output;
  std::string what = "faults";
  bool distinct = false;
};

// One exported mutant.
struct Row {
  FaultRecord record;  // of an output: without a file
  bool fault = false;
  bool kept = false;
  Lineage lineage;
};

std::vector<Row> collect(const CampaignReader& reader, const Flags& flags) {
  std::vector<Row> rows;
  if (flags.what == "faults") {
    FaultFilter filter;
    filter.distinct_only = flags.distinct;
    for (const FaultRecord& fault : reader.faults(filter))
      rows.push_back({fault, true, fault.kept(), reader.lineage(fault)});
  } else {
    std::vector<InputRecord> inputs;
    reader.for_each_input([&](const InputRecord& input) {
      if (input.distinct || !flags.distinct) inputs.push_back(input);
    });
    for (const InputRecord& input : inputs) {
      FaultRecord record;
      static_cast<MutantRecord&>(record) = input;
      rows.push_back({record, input.fault, true, reader.lineage(input)});
    }
  }
  return rows;
}

std::string csv_of(const CampaignReader& reader, const std::vector<Row>& rows) {
  std::string text =
      "id,label,label_name,predicted,predicted_name,confidence,fault,kept,distinct,seed,iteration,slot,steps,lineage,"
      "sha256,file\n";
  for (const Row& row : rows) {
    const FaultRecord& r = row.record;
    text += fmt::format("{},{},{},{},{},{:.6f},{},{},{},{},{},{},{},{},{},{}\n", r.id, r.label,
                        csv_cell(reader.class_name(r.label)), r.predicted, csv_cell(reader.class_name(r.predicted)),
                        r.confidence, row.fault ? 1 : 0, row.kept ? 1 : 0, r.distinct ? 1 : 0, r.seed, r.iteration,
                        r.slot, row.lineage.rules.size(),
                        csv_cell(fmt::format("{}", fmt::join(row.lineage.rules, " | "))), r.sha256, r.file);
  }
  return text;
}

// A fault's image comes from its file, an output's from the store.
ImageStream stream_of(const CampaignReader& reader, const std::vector<Row>& rows, const Flags& flags,
                      Progress& progress) {
  ImageStream stream;
  stream.name = flags.folder;
  for (const Row& row : rows) stream.labels.push_back(row.record.label);
  for (std::int64_t i = 0; i < reader.classes(); ++i) stream.class_names.push_back(reader.class_name(i));
  stream.images = [&](std::int64_t first, std::int64_t count) {
    std::vector<at::Tensor> images(static_cast<std::size_t>(count));
    auto row = [&](std::size_t i) -> const Row& { return rows[static_cast<std::size_t>(first) + i]; };
    if (flags.what == "faults") {
      workers().run(count, [&](std::int64_t index, int) {
        auto i = static_cast<std::size_t>(index);
        images[i] = reader.image(row(i).record);
      });
    } else {
      for (std::size_t i = 0; i < images.size(); ++i) images[i] = reader.image(row(i).record.id);
    }
    progress.advance(count);
    return at::stack(images);
  };
  return stream;
}

template <class Get>
at::Tensor column(const std::vector<Row>& rows, Get&& get) {
  std::vector<std::int64_t> values;
  for (const Row& row : rows) values.push_back(get(row));
  return at::tensor(values, at::kLong);
}

void write_npz_rows(const Dataset& data, const std::vector<Row>& rows, const std::string& path) {
  at::Tensor images = data.channels() == 1 ? data.images.squeeze(1) : data.images.permute({0, 2, 3, 1}).contiguous();
  std::vector<double> confidence;
  for (const Row& row : rows) confidence.push_back(row.record.confidence);
  write_npz(path,
            {{"images", images},
             {"labels", data.labels},
             {"predicted", column(rows, [](const Row& r) { return r.record.predicted; })},
             {"confidence", at::tensor(confidence, at::kDouble)},
             {"id", column(rows, [](const Row& r) { return r.record.id; })},
             {"seed", column(rows, [](const Row& r) { return r.record.seed; })},
             {"fault", column(rows, [](const Row& r) { return r.fault ? 1 : 0; })}},
            Compression::deflate);
}

void run(const Common& common, const Flags& flags) {
  CampaignReader reader(flags.folder);
  std::vector<Row> rows = collect(reader, flags);
  if (rows.empty()) bad_usage("{}: has no {} to export", flags.folder, flags.what);
  if (flags.form == "csv") {
    write_file(flags.output, csv_of(reader, rows));
  } else {
    Progress progress("exporting", static_cast<std::int64_t>(rows.size()), "images");
    ImageStream stream = stream_of(reader, rows, flags, progress);
    if (flags.form == "npz") {
      write_npz_rows(gather(stream), rows, flags.output);
    } else {
      write_image_folder(stream, flags.output);
      write_file(std::filesystem::path(flags.output) / "mutants.csv", csv_of(reader, rows));
    }
  }
  if (common.json) {
    print_line({{"folder", flags.folder}, {"output", flags.output}, {"exported", rows.size()}}, 1);
  } else {
    std::cout << fmt::format("{} {} are now in {}\n", format_count(static_cast<std::int64_t>(rows.size())), flags.what,
                             flags.output);
  }
}

}  // namespace

void add_export_verb(CLI::App& app, Common& common) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = make_verb(app, common, "export", "write what a campaign found to files that other tools open",
                             "  galvani export run1 --to folder -o faults/      PNG files, labels.csv, mutants.csv\n"
                             "  galvani export run1 --to npz -o faults.npz      images, labels, predicted, ...\n"
                             "  galvani export run1 --to csv -o faults.csv      a table with lineages, no images\n"
                             "  galvani export run1 --what outputs --to npz -o outputs.npz\n"
                             "A folder or NPZ file can be given to --data of every verb.");
  verb->add_option("run", flags->folder, "the campaign's folder")->required();
  verb->add_option("--to", flags->form, "folder, npz or csv")
      ->check(CLI::IsMember({"folder", "npz", "csv"}))
      ->capture_default_str();
  verb->add_option("-o,--output", flags->output, "where to")->required();
  verb->add_option("--what", flags->what, "faults, or outputs (every mutant that was kept)")
      ->check(CLI::IsMember({"faults", "outputs"}))
      ->capture_default_str();
  verb->add_flag("--distinct", flags->distinct, "identical images of one class only once");
  verb->callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
