// CIFAR-10 and CIFAR-100 binary files: records of one or two label bytes and 3x32x32 pixels.
#include <fstream>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/data/catalogue.h"
#include "readers.h"
#include "row_file.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kSide = 32;
constexpr std::uint64_t kCifarPixels = 3 * kSide * kSide;

class CifarSource final : public Source {
 public:
  // `label_bytes` 1: CIFAR-10; 2: CIFAR-100 (coarse, fine: the fine one is used).
  CifarSource(const std::vector<fs::path>& files, std::uint64_t label_bytes, std::vector<std::string> class_names)
      : label_bytes_(label_bytes), class_names_(std::move(class_names)) {
    std::uint64_t record = label_bytes_ + kCifarPixels;
    for (const fs::path& path : files) {
      std::uint64_t bytes = fs::file_size(path);
      if (bytes == 0 || bytes % record != 0)
        bad_input("{}: is {} bytes long, which is no multiple of CIFAR's {} bytes a record", path.string(), bytes,
                  record);
      files_.push_back({path, static_cast<std::int64_t>(bytes / record), RowFile(path, 0, record)});
      size_ += files_.back().records;
    }
  }

  std::int64_t size() const override { return size_; }
  std::vector<std::string> class_names() const override { return class_names_; }

  at::Tensor labels() override {
    int limit = label_bytes_ == 1 ? 10 : 100;
    std::vector<std::int64_t> result;
    result.reserve(static_cast<std::size_t>(size_));
    for (const File& file : files_) {
      for (std::int64_t row = 0; row < file.records; ++row) {
        unsigned char label = 0;
        file.rows.read(row, label_bytes_ - 1, 1, &label);
        if (label >= limit)
          bad_input("{}: record {} has label {}, but labels are from 0 to {}", file.path.string(), row, label,
                    limit - 1);
        result.push_back(label);
      }
    }
    return label_tensor(result);
  }

  SampleType type(std::int64_t) override { return SampleType::image(3, kSide, kSide); }

  at::Tensor values(const std::vector<std::int64_t>& rows, std::int64_t) override {
    at::Tensor result =
        empty_images(files_.front().path.string(), static_cast<std::int64_t>(rows.size()), 3, kSide, kSide);
    auto* out = result.data_ptr<std::uint8_t>();
    for (std::int64_t row : rows) {
      std::size_t file = 0;
      while (row >= files_[file].records) row -= files_[file++].records;
      files_[file].rows.read(row, label_bytes_, kCifarPixels, out);
      out += kCifarPixels;
    }
    return result;
  }

 private:
  struct File {
    fs::path path;
    std::int64_t records;
    RowFile rows;
  };
  std::vector<File> files_;
  std::uint64_t label_bytes_;
  std::vector<std::string> class_names_;
  std::int64_t size_ = 0;
};

// fine_label_names.txt of CIFAR-100: a name a line.
std::vector<std::string> fine_label_names(const fs::path& folder) {
  fs::path path = folder / "fine_label_names.txt";
  std::vector<std::string> names;
  if (!fs::is_regular_file(path)) return names;
  std::ifstream file(path);
  for (std::string line; names.size() < 100 && std::getline(file, line);) {
    if (!line.empty()) names.push_back(printable(line));
  }
  if (names.size() != 100) bad_input("{}: lists {} class names, but CIFAR-100 has 100", path.string(), names.size());
  return names;
}

std::vector<fs::path> files_of_split(const fs::path& folder, const std::string& split) {
  std::vector<fs::path> candidates;
  if (split == "test") candidates = {folder / "test_batch.bin", folder / "test.bin"};
  if (split == "train") {
    for (int i = 1; i <= 5; ++i) candidates.push_back(folder / ("data_batch_" + std::to_string(i) + ".bin"));
    candidates.push_back(folder / "train.bin");
  }
  std::vector<fs::path> found;
  for (const fs::path& path : candidates) {
    if (fs::is_regular_file(path)) found.push_back(path);
  }
  return found;
}

bool is_cifar100(const fs::path& path) {
  return path.filename() == "train.bin" || path.filename() == "test.bin";
}

}  // namespace

bool is_cifar(const fs::path& path) {
  if (fs::is_directory(path)) return !files_of_split(path, "train").empty() || !files_of_split(path, "test").empty();
  return path.extension() == ".bin";
}

std::unique_ptr<Source> open_cifar(const OpenRequest& request) {
  std::vector<fs::path> files = {request.path};
  if (fs::is_directory(request.path)) {
    files = files_of_split(request.path, request.split);
    if (files.empty()) bad_input("{}: has no {} split", request.path.string(), printable(request.split));
  } else if (request.explicit_split) {
    bad_input("{}: is one file and has no {} split", request.path.string(), printable(request.split));
  }
  // A file of another name is told by its length.
  bool hundred = is_cifar100(files[0]) && fs::file_size(files[0]) % (kCifarPixels + 2) == 0;
  if (!hundred && fs::file_size(files[0]) % (kCifarPixels + 1) != 0)
    hundred = fs::file_size(files[0]) % (kCifarPixels + 2) == 0;
  if (hundred) return std::make_unique<CifarSource>(files, 2, fine_label_names(files[0].parent_path()));
  return std::make_unique<CifarSource>(files, 1, catalogue_entry("cifar10").class_names);
}

}  // namespace galvani
