#include "galvani/data/source.h"

#include "galvani/base/error.h"
#include "readers.h"

namespace galvani {
namespace fs = std::filesystem;

const std::vector<Format>& formats() {
  static const std::vector<Format> table = {
      {"idx", "MNIST's format, plain or gzip: a folder with its four files, or an images file", is_idx, open_idx},
      {"cifar", "CIFAR-10 and CIFAR-100 binary: their folder, or one .bin file", is_cifar, open_cifar},
      {"numpy", ".npy or .npz with uint8 images", is_numpy, open_numpy},
      {"files",
       "PNG, JPEG, BMP or PNM images, or WAV, AIFF or FLAC sounds: a folder per class, a folder with labels.csv, a "
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
      "{}: is not a known format (idx, CIFAR binary, NPY, NPZ, PNG, JPEG, BMP, PNM, WAV, AIFF, FLAC, or a folder of "
      "images or sounds)",
      request.path.string());
}

}  // namespace galvani
