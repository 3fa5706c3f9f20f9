// From a spec to data.
#include <ATen/ATen.h>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/data/catalogue.h"
#include "galvani/data/digits.h"
#include "galvani/data/source.h"
#include "galvani/data/spec.h"
#include "galvani/data/view.h"

namespace galvani {
namespace {

std::unique_ptr<Source> open_named(const CatalogueEntry& entry, const std::string& split) {
  if (entry.built_in()) return open_digits(split);
  if (split != "train" && split != "test")
    bad_usage("data '{}:{}': {} has no split '{}', only train and test", entry.name, printable(split), entry.name,
              printable(split));
  auto folder = data_folder(entry);
  if (!folder) bad_input("{} has not been fetched yet; run: galvani data get {}", entry.name, entry.name);
  return open_path({*folder, split, true, 0});
}

DataView open_part(DataSpec spec, const std::string& default_split) {
  bool explicit_split = !spec.split.empty();
  std::string split = explicit_split ? spec.split : default_split;
  const CatalogueEntry* entry = spec.is_path ? nullptr : find_catalogue_entry(spec.source);
  if (entry != nullptr) spec.split = split;
  std::shared_ptr<Source> source = entry != nullptr
                                       ? open_named(*entry, split)
                                       : open_path({spec.source, split, explicit_split, spec.clip_length()});

  Labelled about;
  about.name = spec.str();
  about.class_names = entry != nullptr ? entry->class_names : source->class_names();
  at::Tensor labels = source->labels();
  std::vector<std::int64_t> selected = select_rows(spec.selectors, labels, about.class_names, about.name);
  about.labels = labels.index_select(0, label_tensor(selected));
  SampleType type = source->type(selected.at(0));
  if (spec.clip_length() > 0 && type.kind != SampleKind::audio)
    bad_usage("data '{}': only sounds have a length, but these are {}", about.name, type.noun());
  return {about, type, [source, selected = std::move(selected)](const std::vector<std::int64_t>& rows) {
            std::vector<std::int64_t> of_source;
            of_source.reserve(rows.size());
            for (std::int64_t row : rows) of_source.push_back(selected[static_cast<std::size_t>(row)]);
            return source->values(of_source, selected[0]);
          }};
}

}  // namespace

DataView open_data(const std::string& spec, const std::string& default_split) {
  std::vector<DataView> parts;
  for (const DataSpec& part : parse_data_specs(spec)) parts.push_back(open_part(part, default_split));
  return concatenate(parts);
}

Dataset load_data(const std::string& spec, const std::string& default_split) {
  return open_data(spec, default_split).load();
}

}  // namespace galvani
