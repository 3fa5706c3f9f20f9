#include "bounds.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/base/runtime.h"
#include "galvani/data/dataset.h"

namespace galvani {

std::optional<std::uint64_t> product(const std::vector<std::uint64_t>& factors) {
  std::uint64_t result = 1;
  for (std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result) || result >> 62 != 0) return std::nullopt;
  }
  return result;
}

void require_memory(const std::string& what, std::uint64_t bytes) {
  // Small requests are not worth asking the system about.
  if (bytes < std::uint64_t{64} << 20) return;
  std::uint64_t available = available_memory();
  if (bytes > available - available / 8)
    bad_input("{}: needs {} of memory, but {} are free", what, format_bytes(bytes), format_bytes(available));
}

at::Tensor empty_images(const std::string& what, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  auto bytes = product({static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(h),
                        static_cast<std::uint64_t>(w)});
  if (!bytes) bad_input("{}: {} images of {}x{}x{} are more than any memory holds", what, n, c, h, w);
  require_memory(what, *bytes);
  return at::empty({n, c, h, w}, at::kByte);
}

std::string read_head(const std::filesystem::path& path, std::size_t n) {
  std::ifstream file(path, std::ios::binary);
  if (!file) bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  std::string head(n, '\0');
  file.read(head.data(), static_cast<std::streamsize>(n));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

at::Tensor label_tensor(const std::vector<std::int64_t>& labels) {
  at::Tensor result = at::empty({static_cast<std::int64_t>(labels.size())}, at::kLong);
  std::copy(labels.begin(), labels.end(), result.data_ptr<std::int64_t>());
  return result;
}

at::Tensor no_labels(std::int64_t n) {
  return at::full({n}, Dataset::kUnlabelled, at::kLong);
}

SampleType type_of_array(const std::string& what, const std::vector<std::int64_t>& shape) {
  if (shape.size() == 3) return SampleType::image(1, shape[1], shape[2]);
  if (shape.size() != 4)
    bad_input("{}: images have {} axes, but [N,H,W], [N,H,W,C] or [N,C,H,W] are needed", what, shape.size());
  auto is_channels = [&](std::size_t axis) { return shape[axis] == 1 || shape[axis] == 3; };
  if (is_channels(1) && is_channels(3))
    bad_input(
        "{}: shape [{}] could be [N,H,W,C] or [N,C,H,W]; for gray images save [N,H,W], for colour images pad them to "
        "another size",
        what, fmt::join(shape, ", "));
  if (is_channels(1)) return SampleType::image(shape[1], shape[2], shape[3]);
  if (is_channels(3)) return SampleType::image(shape[3], shape[1], shape[2]);
  bad_input("{}: shape [{}] has no axis of 1 or 3 channels, second or last", what, fmt::join(shape, ", "));
}

at::Tensor images_from_array(const at::Tensor& array, const SampleType& type) {
  std::vector<std::int64_t> wanted = type.batch(array.size(0));
  bool planes_last = array.dim() == 4 && array.sizes() != at::IntArrayRef(wanted);
  return planes_last ? array.permute({0, 3, 1, 2}).contiguous() : array.reshape(wanted).contiguous();
}

}  // namespace galvani
