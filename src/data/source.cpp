#include "galvani/data/source.h"

#include <ATen/ATen.h>

#include "fit_image.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "readers.h"

namespace galvani {
namespace fs = std::filesystem;

SampleType FileSurvey::type() const {
  if (rate > 0) return SampleType::audio(channels, width, rate);
  return SampleType::image(channels == 1 ? 1 : 3, height, width);
}

std::vector<FileSurvey> Source::survey(const std::vector<std::int64_t>& /*rows*/, bool /*thorough*/) {
  return {};
}

at::Tensor Source::fitted(const std::vector<std::int64_t>& rows, const Intake& intake, const SampleType& target) {
  at::Tensor images = values(rows, rows.at(0)).contiguous();
  at::Tensor result = at::empty(target.batch(images.size(0)), at::kByte);
  auto bytes = static_cast<std::size_t>(images[0].numel());
  workers().run(images.size(0), [&](std::int64_t i, int) {
    const char* pixels = static_cast<const char*>(images.data_ptr()) + static_cast<std::size_t>(i) * bytes;
    Image image{images.size(1), images.size(2), images.size(3), 1, std::string(pixels, bytes)};
    fit_image(image, intake, target.shape, result[i].data_ptr<std::uint8_t>(), fmt::format("image {}", i));
  });
  return result;
}

const std::vector<Format>& formats() {
  static const std::vector<Format> table = {
      {"idx", "MNIST's format, plain or gzip: a folder with its four files, or an images file", is_idx, open_idx},
      {"cifar", "CIFAR-10 and CIFAR-100 binary: their folder, or one .bin file", is_cifar, open_cifar},
      {"numpy", ".npy or .npz with uint8 images", is_numpy, open_numpy},
      {"files",
       "PNG, JPEG, WebP, TIFF, BMP or PNM images, or WAV, AIFF or FLAC sounds: a folder per class, a folder with "
       "labels.csv, a "
       "plain folder, or one file",
       is_sample_folder, open_sample_folder},
  };
  return table;
}

std::unique_ptr<Source> open_path(const OpenRequest& request) {
  std::error_code error;
  fs::file_status status = fs::status(request.path, error);
  if (!fs::exists(status)) bad_input("{}: there is no such file or folder", request.path.string());
  if (!fs::is_directory(status) && !fs::is_regular_file(status))
    bad_input("{}: is neither a file nor a folder", request.path.string());
  for (const Format& format : formats()) {
    if (!format.recognises(request.path)) continue;
    try {
      return format.open(request);
    } catch (const fs::filesystem_error& e) {
      bad_input("{}: cannot be read: {}", request.path.string(), e.code().message());
    }
  }
  bad_input(
      "{}: is not a known format (idx, CIFAR binary, NPY, NPZ, PNG, JPEG, WebP, TIFF, BMP, PNM, WAV, AIFF, FLAC, or a "
      "folder of "
      "images or sounds)",
      request.path.string());
}

}  // namespace galvani
