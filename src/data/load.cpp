// From a spec to a data set.
#include <ATen/ATen.h>

#include "galvani/base/error.h"
#include "galvani/data/catalogue.h"
#include "galvani/data/dataset.h"
#include "galvani/data/digits.h"
#include "galvani/data/source.h"
#include "galvani/data/spec.h"

namespace galvani {
namespace {

std::unique_ptr<Source> open_named(const CatalogueEntry& entry, const std::string& split) {
  if (split != "train" && split != "test")
    bad_usage("data '{}:{}': {} has no split '{}', only train and test", entry.name, printable(split), entry.name,
              printable(split));
  if (entry.built_in()) return open_digits(split);
  auto folder = data_folder(entry);
  if (!folder) bad_input("{} has not been fetched yet; run: galvani data get {}", entry.name, entry.name);
  return open_path({*folder, split, true});
}

Dataset load_part(DataSpec spec, const std::string& default_split) {
  bool explicit_split = !spec.split.empty();
  std::string split = explicit_split ? spec.split : default_split;
  const CatalogueEntry* entry = spec.is_path ? nullptr : find_catalogue_entry(spec.source);
  if (entry != nullptr) spec.split = split;
  std::unique_ptr<Source> source =
      entry != nullptr ? open_named(*entry, split) : open_path({spec.source, split, explicit_split});

  Dataset data;
  data.name = spec.str();
  data.class_names = entry != nullptr ? entry->class_names : source->class_names();
  at::Tensor labels = source->labels();
  std::vector<std::int64_t> rows = select_rows(spec.selectors, labels, data.class_names, data.name);
  data.images = source->images(rows);
  data.labels = labels.index_select(0, at::from_blob(rows.data(), {static_cast<std::int64_t>(rows.size())}, at::kLong));
  validate(data);
  return data;
}

}  // namespace

Dataset load_data(const std::string& spec, const std::string& default_split) {
  std::vector<Dataset> parts;
  for (const DataSpec& part : parse_data_specs(spec)) parts.push_back(load_part(part, default_split));
  return concatenate(parts);
}

}  // namespace galvani
