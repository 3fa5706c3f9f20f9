#include "bounds.h"

#include <ATen/ATen.h>

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

at::Tensor images_from_array(const std::string& what, const at::Tensor& array) {
  if (array.dim() == 3) return array.unsqueeze(1).contiguous();
  if (array.dim() != 4)
    bad_input("{}: images have {} axes, but [N,H,W], [N,H,W,C] or [N,C,H,W] are needed", what, array.dim());
  auto is_channels = [&](std::int64_t axis) { return array.size(axis) == 1 || array.size(axis) == 3; };
  if (is_channels(1) && is_channels(3))
    bad_input(
        "{}: shape [{}, {}, {}, {}] could be [N,H,W,C] or [N,C,H,W]; for gray images save [N,H,W], for colour images "
        "pad them to another size",
        what, array.size(0), array.size(1), array.size(2), array.size(3));
  if (is_channels(1)) return array.contiguous();
  if (is_channels(3)) return array.permute({0, 3, 1, 2}).contiguous();
  bad_input("{}: shape [{}, {}, {}, {}] has no axis of 1 or 3 channels, second or last", what, array.size(0),
            array.size(1), array.size(2), array.size(3));
}

}  // namespace galvani
