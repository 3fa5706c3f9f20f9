// The data sets known by name, and how to get them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "galvani/data/sample.h"

namespace galvani {

struct CatalogueFile {
  std::string name;
  std::string sha256;  // of the content, whether the file is compressed or not
};

struct CatalogueEntry {
  std::string name;
  std::string about;
  std::string origin;  // where `get` fetches it from
  std::int64_t train = 0;
  std::int64_t test = 0;
  SampleType type;
  std::vector<std::string> class_names;
  std::vector<CatalogueFile> files;  // none: made on the spot, or put together
  bool put_together = false;         // of what other programs make: folders train/ and test/ of a folder a class

  bool built_in() const { return files.empty() && !put_together; }
};

const std::vector<CatalogueEntry>& catalogue();
const CatalogueEntry* find_catalogue_entry(const std::string& name);
const CatalogueEntry& catalogue_entry(const std::string& name);  // a usage error if there is none

// The folder with its files, if it has been fetched.
std::optional<std::filesystem::path> data_folder(const CatalogueEntry& entry);

// Fetches a data set into the cache, or takes its standard files from the folder `from`. Every file's content is
// verified; the folder appears when it is complete, never before. Returns where it is.
std::filesystem::path get_data(const CatalogueEntry& entry, const std::optional<std::filesystem::path>& from);

}  // namespace galvani
