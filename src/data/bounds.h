// Arithmetic and memory checks for sizes that come from files.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "galvani/data/sample.h"

namespace galvani {

// Deflate cannot expand a file by more than this factor (it is 1032:1 at best), so a header that claims more lies.
constexpr std::uint64_t kMaxExpansion = 1100;

// The product, or nothing if it does not fit 62 bits.
std::optional<std::uint64_t> product(const std::vector<std::uint64_t>& factors);

// Error(bad_input) naming `what` unless `bytes` fit the memory that is free.
void require_memory(const std::string& what, std::uint64_t bytes);

// An uninitialised [n, c, h, w] uint8 tensor, after require_memory.
at::Tensor empty_images(const std::string& what, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w);

// The first bytes of a file, fewer if it is shorter.
std::string read_head(const std::filesystem::path& path, std::size_t n);

// A [N] int64 tensor of a vector, and one where every label is unknown.
at::Tensor label_tensor(const std::vector<std::int64_t>& labels);
at::Tensor no_labels(std::int64_t n);

// The images that an array of shape [N, H, W], [N, H, W, C] or [N, C, H, W] holds. Error(bad_input) naming `what` for
// any other shape, and where it could be either of the last two.
SampleType type_of_array(const std::string& what, const std::vector<std::int64_t>& shape);
// Such an array as contiguous [N, C, H, W].
at::Tensor images_from_array(const at::Tensor& array, const SampleType& type);

}  // namespace galvani
