// The formats' functions, one file each; formats() in source.cpp lists them.
#pragma once

#include "galvani/data/source.h"

namespace galvani {

bool is_idx(const std::filesystem::path& path);
std::unique_ptr<Source> open_idx(const OpenRequest& request);

bool is_cifar(const std::filesystem::path& path);
std::unique_ptr<Source> open_cifar(const OpenRequest& request);

bool is_numpy(const std::filesystem::path& path);
std::unique_ptr<Source> open_numpy(const OpenRequest& request);

bool is_sample_folder(const std::filesystem::path& path);
std::unique_ptr<Source> open_sample_folder(const OpenRequest& request);

// What was lent under a name (galvani/data/memory.h); no format, for it is in no file.
std::unique_ptr<Source> open_memory(const std::string& name);

}  // namespace galvani
