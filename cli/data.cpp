#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/data/catalogue.h"
#include "galvani/data/export.h"
#include "galvani/data/sheet.h"
#include "galvani/data/spec.h"
#include "galvani/data/view.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPiece = 1024;  // inputs looked at together
constexpr std::size_t kNamedDuplicates = 3;

// --- list

void list_data(const Common& common) {
  Json entries = Json::array();
  Table table({"name", ">train", ">test", "shape", ">classes", "content", "from", "fetched"});
  for (const CatalogueEntry& entry : catalogue()) {
    auto folder = data_folder(entry);
    std::string state = entry.built_in() ? "ready" : folder ? folder->string() : "no";
    table.add({entry.name, format_count(entry.train), format_count(entry.test), entry.type.shape_text(),
               std::to_string(entry.class_names.size()), entry.about, entry.origin, state});
    entries.push_back({{"name", entry.name},
                       {"about", entry.about},
                       {"train", entry.train},
                       {"test", entry.test},
                       {"shape", entry.type.shape},
                       {"classes", entry.class_names},
                       {"origin", entry.origin},
                       {"ready", entry.built_in() || folder},
                       {"folder", folder ? Json(folder->string()) : Json()}});
  }
  if (common.json) {
    common.give(entries, 2);
    return;
  }
  say("{}", table.str());
}

void add_list(Verb& data, Common& common) {
  Verb& list = make_verb(data, common, "list", "the data sets known by name", "  galvani data list\n");
  list.callback([&common] { list_data(common); });
}

// --- get

struct GetRequest {
  std::vector<std::string> names;
  std::string from;
};

void get_all(const GetRequest& request, const Common& common) {
  // Every name is looked up before anything is fetched.
  std::vector<const CatalogueEntry*> entries;
  for (const std::string& name : request.names) entries.push_back(&catalogue_entry(name));
  if (!request.from.empty() && entries.size() != 1) bad_usage("--from goes with one data set, not {}", entries.size());
  Json result = Json::array();
  for (const CatalogueEntry* entry : entries) {
    std::string place = "built in";
    std::string remark = "is built in: nothing to fetch";
    if (!entry->built_in()) {
      auto present = data_folder(*entry);
      bool fetch = !present || !request.from.empty();
      place = (fetch ? get_data(*entry, request.from.empty() ? std::nullopt : std::optional<fs::path>(request.from))
                     : *present)
                  .string();
      remark = fmt::format("{} {}", fetch ? "is now in" : "is already in", place);
    }
    result.push_back({{"name", entry->name}, {"folder", place}});
    if (!common.json) say("{} {}\n", entry->name, remark);
  }
  if (common.json) common.give(result, 2);
}

void add_get(Verb& data, Common& common) {
  Verb& get = make_verb(data, common, "get", "fetch data sets into the cache",
                        "  galvani data get mnist\n"
                        "  galvani data get mnist fashion-mnist cifar10\n"
                        "  galvani data get cifar10 --from cifar-10-batches-bin\n");
  auto request = std::make_shared<GetRequest>();
  get.add_option("name", request->names, "which (see: galvani data list)").required();
  get.add_option("--from", request->from, "take the standard files from this folder instead of fetching them");
  get.callback([request, &common] { get_all(*request, common); });
}

// --- info

struct Statistics {
  std::vector<std::int64_t> counts;  // inputs a class
  std::int64_t unlabelled = 0;
  std::vector<double> mean;  // a channel
  std::vector<double> deviation;
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t duplicates = 0;                                          // inputs equal to an earlier one
  std::vector<std::pair<std::int64_t, std::int64_t>> first_duplicates;  // and the earlier one
};

using Sizes = std::vector<std::pair<SampleType, std::int64_t>>;

// From histograms of the values: exact, and no copy of them in floating point. [channels, values that are possible]
at::Tensor add_histograms(const at::Tensor& rows, const SampleType& type, at::Tensor histograms) {
  std::int64_t possible = type.high() - type.low() + 1;
  if (!histograms.defined()) histograms = at::zeros({type.shape[0], possible}, at::kDouble);
  for (std::int64_t c = 0; c < type.shape[0]; ++c) {
    at::Tensor values = rows.select(1, c).reshape(-1);
    if (type.low() < 0) values = values.to(at::kInt) - type.low();
    histograms[c] += at::bincount(values, {}, possible);
  }
  return histograms;
}

Statistics measure(const DataView& data) {
  Statistics result;
  result.counts.resize(static_cast<std::size_t>(data.classes()));
  auto labels = data.labels.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < data.size(); ++i) {
    ++(labels[i] < 0 ? result.unlabelled : result.counts[static_cast<std::size_t>(labels[i])]);
  }
  const SampleType& type = data.type();
  at::Tensor histograms;
  std::unordered_map<std::string, std::int64_t> seen;  // SHA-256 of every one
  Progress progress("reading", data.size(), type.noun());
  data.for_each_piece(kPiece, [&](const at::Tensor& rows, std::int64_t first) {
    histograms = add_histograms(rows, type, histograms);
    const char* bytes = static_cast<const char*>(rows.data_ptr());
    for (std::int64_t i = 0; i < rows.size(0); ++i) {
      std::string hash = sha256({bytes + static_cast<std::size_t>(i) * type.bytes(), type.bytes()});
      auto [earlier, fresh] = seen.emplace(hash.substr(0, 32), first + i);
      if (fresh) continue;
      ++result.duplicates;
      if (result.first_duplicates.size() < kNamedDuplicates)
        result.first_duplicates.emplace_back(first + i, earlier->second);
    }
    progress.advance(rows.size(0));
  });
  at::Tensor values = at::arange(type.low(), type.high() + 1, at::kDouble);
  for (std::int64_t c = 0; c < type.shape[0]; ++c) {
    at::Tensor histogram = histograms[c];
    auto n = histogram.sum().item<double>();
    double mean = (histogram * values).sum().item<double>() / n;
    result.mean.push_back(mean);
    result.deviation.push_back(std::sqrt((histogram * (values - mean).square()).sum().item<double>() / n));
  }
  at::Tensor found = histograms.sum(0).nonzero().flatten() + type.low();
  result.low = found.min().item<std::int64_t>();
  result.high = found.max().item<std::int64_t>();
  return result;
}

std::string numbers_text(const std::vector<double>& numbers) {
  std::string text;
  for (double number : numbers) text += fmt::format("{}{:.2f}", text.empty() ? "" : ", ", number);
  return text;
}

double seconds_of(const SampleType& type) {
  return static_cast<double>(type.shape[1]) / static_cast<double>(type.rate);
}

// "0.412 to 9.3 s, median 1.9 s; 16000 Hz (12), 8000 Hz (3); 1 channel (14), 2 channels (1)"
std::string sound_sizes_text(const Sizes& sizes) {
  std::vector<double> lengths;
  std::map<std::int64_t, std::int64_t> rates, channels;
  for (const auto& [type, count] : sizes) {
    lengths.insert(lengths.end(), static_cast<std::size_t>(count), seconds_of(type));
    rates[type.rate] += count;
    channels[type.shape[0]] += count;
  }
  std::sort(lengths.begin(), lengths.end());
  std::string text =
      fmt::format("{:.3g} to {:.3g} s, median {:.3g} s", lengths.front(), lengths.back(), lengths[lengths.size() / 2]);
  const char* mark = "; ";
  for (const auto& [rate, count] : rates) {
    text += fmt::format("{}{} Hz ({})", mark, rate, format_count(count));
    mark = ", ";
  }
  mark = "; ";
  for (const auto& [n, count] : channels) {
    text += fmt::format("{}{} channel{} ({})", mark, n, n == 1 ? "" : "s", format_count(count));
    mark = ", ";
  }
  return text;
}

// "640x480 colour (12), 320x240 gray (3), 5 others"
std::string sizes_text(const Sizes& sizes) {
  constexpr std::size_t kShown = 4;
  if (sizes[0].first.kind == SampleKind::audio) return sound_sizes_text(sizes);
  std::string text;
  for (std::size_t i = 0; i < std::min(sizes.size(), kShown); ++i) {
    const SampleType& type = sizes[i].first;
    text += fmt::format("{}{}x{} {} ({})", i == 0 ? "" : ", ", type.shape[2], type.shape[1],
                        type.shape[0] == 1 ? "gray" : "colour", format_count(sizes[i].second));
  }
  return sizes.size() > kShown ? fmt::format("{}, {} others", text, sizes.size() - kShown) : text;
}

std::string input_name(const DataView& data, std::int64_t row) {
  return data.files.empty() ? std::to_string(row) : data.file(row);
}

std::string duplicates_text(const DataView& data, const Statistics& statistics) {
  std::string text = format_count(statistics.duplicates);
  if (data.files.empty()) return text;
  for (std::size_t i = 0; i < statistics.first_duplicates.size(); ++i) {
    auto [later, earlier] = statistics.first_duplicates[i];
    text += fmt::format("{}{} is {}", i == 0 ? ": " : ", ", input_name(data, later), input_name(data, earlier));
  }
  return text + (statistics.duplicates > static_cast<std::int64_t>(kNamedDuplicates) ? ", ..." : "");
}

void print_info(const DataView& data, const Sizes& sizes, const Statistics& statistics, const std::string& sheet) {
  const SampleType& type = data.type();
  bool images = type.kind == SampleKind::image;
  auto line = [](const std::string& key, const std::string& value) { say("  {:<12}{}\n", key, value); };
  say("{}\n", data.name);
  line(type.noun(), format_count(data.size()));
  if (sizes.size() > 1) {
    line("sizes", sizes_text(sizes));
    line("", fmt::format("(measured and drawn at {}, a model gets its own size)", type.shape_text()));
  } else {
    line("shape", type.shape_text());
  }
  if (!images && sizes.size() < 2) line("length", fmt::format("{:.3f} s", seconds_of(type)));
  std::string value = images ? "pixel" : "value";
  line(value + " mean", numbers_text(statistics.mean));
  line(value + " std", numbers_text(statistics.deviation));
  line(value + " range", fmt::format("{} to {}", statistics.low, statistics.high));
  line("duplicates", duplicates_text(data, statistics));
  line("sheet", sheet);
  say("\n");
  Table table({">label", "class", fmt::format(">{}", type.noun()), ">share"});
  auto add = [&](const std::string& number, const std::string& name, std::int64_t count) {
    double share = 100.0 * static_cast<double>(count) / static_cast<double>(data.size());
    table.add({number, printable(name), format_count(count), fmt::format("{:.1f}%", share)});
  };
  for (std::size_t c = 0; c < statistics.counts.size(); ++c)
    add(std::to_string(c), data.class_name(static_cast<std::int64_t>(c)), statistics.counts[c]);
  if (statistics.unlabelled > 0) add("", "unlabelled", statistics.unlabelled);
  say("{}", table.str());
}

// mnist:test[:100] → mnist-test-sheet.png
std::string default_sheet(const std::string& spec) {
  DataSpec first = parse_data_specs(spec).front();
  std::string stem = first.source;
  if (first.is_path) stem = fs::path(fs::absolute(stem) / "").parent_path().filename().string();
  return stem + (first.split.empty() ? "" : "-" + first.split) + "-sheet.png";
}

void inform(const std::string& spec, std::string sheet, bool skip_broken, const Common& common) {
  OpenedData opened(spec);
  Sizes sizes = opened.sizes();
  bool mixed = sizes.size() > 1;
  DataView data = opened.view(needs_to_look_at(opened, skip_broken));
  const SampleType& type = data.type();
  if (sheet.empty()) sheet = default_sheet(spec);
  Statistics statistics = measure(data);
  write_sheet(data, sheet);
  if (!common.json) {
    print_info(data, sizes, statistics, sheet);
    return;
  }
  Json classes = Json::array();
  for (std::size_t c = 0; c < statistics.counts.size(); ++c)
    classes.push_back(
        {{"label", c}, {"name", data.class_name(static_cast<std::int64_t>(c))}, {type.noun(), statistics.counts[c]}});
  Json result = {{"name", data.name},
                 {type.noun(), data.size()},
                 {"shape", type.shape},
                 {"mean", statistics.mean},
                 {"std", statistics.deviation},
                 {"min", statistics.low},
                 {"max", statistics.high},
                 {"duplicates", statistics.duplicates},
                 {"unlabelled", statistics.unlabelled},
                 {"classes", classes}};
  if (mixed) {
    result["sizes"] = Json::array();
    for (const auto& [size, count] : sizes) {
      Json entry = {{"shape", size.shape}, {size.noun(), count}};
      if (size.kind == SampleKind::audio) entry["rate"] = size.rate;
      result["sizes"].push_back(entry);
    }
  }
  for (const auto& [later, earlier] : statistics.first_duplicates) {
    if (!data.files.empty()) result["first_duplicates"].push_back({data.file(later), data.file(earlier)});
  }
  result["sheet"] = sheet;
  if (type.kind == SampleKind::audio) result["rate"] = type.rate;
  common.give(result, 2);
}

void add_info(Verb& data, Common& common) {
  Verb& info = make_verb(data, common, "info", "count, measure and draw a contact sheet",
                         "  galvani data info digits:train\n"
                         "  galvani data info 'mnist:test[class=3]' -o threes.png\n"
                         "  galvani data info photos/ --json\n");
  auto spec = std::make_shared<std::string>();
  auto sheet = std::make_shared<std::string>();
  info.add_option("data", *spec, "what to look at, such as mnist:test[:1000] or a path").required();
  info.add_option("-o,--output", *sheet, "where to draw the contact sheet (default: <name>-sheet.png)");
  auto skip_broken = std::make_shared<bool>(false);
  info.add_flag("--skip-broken", *skip_broken, "leave out files that cannot be read");
  info.callback([=, &common] { inform(*spec, *sheet, *skip_broken, common); });
}

// --- export

struct ExportRequest {
  std::string spec;
  std::string output;
  std::string format = "folder";
  bool skip_broken = false;
};

void export_data(const ExportRequest& request, const Common& common) {
  InputNeeds needs;
  needs.intake.skip_broken = request.skip_broken;
  DataView data = OpenedData(request.spec).view(needs);
  if (request.format == "folder") write_sample_folder(data, request.output);
  if (request.format == "npz") write_npz_dataset(data.load(), request.output);
  if (request.format == "idx") {
    bool train = parse_data_specs(request.spec).front().split == "train";
    write_idx(data.load(), request.output, train ? "train" : "t10k");
  }
  if (common.json) {
    common.give({{"name", data.name}, {data.type().noun(), data.size()}, {"output", request.output}}, 2);
  } else {
    say("{} {} of {} are now in {}\n", format_count(data.size()), data.type().noun(), data.name, request.output);
  }
}

void add_export(Verb& data, Common& common) {
  Verb& verb = make_verb(data, common, "export", "write images and labels to files",
                         "  galvani data export 'digits:test[:100]' -o digits --to folder\n"
                         "  galvani data export cifar10:test -o cifar.npz --to npz\n"
                         "  galvani data export digits:train -o mydigits --to idx\n");
  auto request = std::make_shared<ExportRequest>();
  verb.add_option("data", request->spec, "what to write, such as mnist:test[:1000] or a path").required();
  verb.add_option("-o,--output", request->output, "the folder or file to write").required();
  verb.add_option("--to", request->format, "folder (PNG files and labels.csv), npz, or idx")
      .check(OneOf{{"folder", "npz", "idx"}})
      .show_default();
  verb.add_flag("--skip-broken", request->skip_broken, "leave out files that cannot be read");
  verb.callback([request, &common] { export_data(*request, common); });
}

}  // namespace

void add_data_verb(Verb& app, Common& common) {
  // The parts have the common options; the group itself has none.
  Verb& data = app.add_verb("data", "list, fetch, look at and export data sets");
  data.need_verb();
  data.examples(
      "  galvani data list\n  galvani data get mnist\n  galvani data info mnist:test\n"
      "  galvani data export 'digits:test[:100]' -o digits --to folder\n");
  add_list(data, common);
  add_get(data, common);
  add_info(data, common);
  add_export(data, common);
}

}  // namespace galvani::cli
