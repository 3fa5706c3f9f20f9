// The idx format of MNIST: two zero bytes, a type byte, the number of axes, their sizes big-endian, the values.
#include <ATen/ATen.h>

#include <array>
#include <cstring>
#include <optional>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "readers.h"
#include "row_file.h"
#include "unpack.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMaxIdxAxes = 4;
constexpr unsigned char kUnsignedByte = 0x08;

struct IdxHeader {
  std::vector<std::uint64_t> sizes;
  std::uint64_t length = 0;  // of the header itself
  std::uint64_t payload = 0;
};

struct IdxFile {
  fs::path path;
  IdxHeader header;
  RowFile rows;  // one a first-axis entry
};

IdxHeader parse_header(const std::string& head, const fs::path& path) {
  if (head.size() < 4 || head[0] != 0 || head[1] != 0)
    bad_input("{}: is not an idx file (it does not start with two zero bytes)", path.string());
  auto type = static_cast<unsigned char>(head[2]);
  auto axes = static_cast<unsigned char>(head[3]);
  if (type != kUnsignedByte)
    bad_input("{}: holds values of idx type 0x{:02x}, but only unsigned bytes are read", path.string(), type);
  if (axes < 1 || axes > kMaxIdxAxes)
    bad_input("{}: its header says {} axes, but 1 to {} are possible", path.string(), axes, kMaxIdxAxes);
  IdxHeader header;
  header.length = 4 + 4ULL * axes;
  if (head.size() < header.length) bad_input("{}: ends inside its header", path.string());
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(head[4 + 4 * axis + i]);
    if (size == 0) bad_input("{}: its header says that axis {} is empty", path.string(), axis);
    header.sizes.push_back(size);
  }
  auto payload = product(header.sizes);
  if (!payload) bad_input("{}: the sizes in its header are impossibly large", path.string());
  header.payload = *payload;
  return header;
}

[[noreturn]] void wrong_length(const fs::path& path, std::uint64_t claimed) {
  bad_input("{}: its header says {} bytes of values follow, but the file does not hold exactly that many",
            path.string(), claimed);
}

IdxFile open_file(const fs::path& path) {
  std::uint64_t file_size = fs::file_size(path);
  if (!is_gzip(path)) {
    IdxHeader header = parse_header(read_head(path, 4 + 4 * kMaxIdxAxes), path);
    if (header.payload != file_size - header.length) wrong_length(path, header.payload);
    std::uint64_t stride = header.payload / header.sizes[0];
    std::uint64_t length = header.length;
    return {path, std::move(header), RowFile(path, length, stride)};
  }
  GzipReader reader(path);
  std::string head(4, '\0');
  head.resize(reader.read(head.data(), 4));
  std::size_t axes = head.size() == 4 ? std::min<std::size_t>(static_cast<unsigned char>(head[3]), kMaxIdxAxes) : 0;
  std::string sizes(4 * axes, '\0');
  sizes.resize(reader.read(sizes.data(), sizes.size()));
  IdxHeader header = parse_header(head + sizes, path);
  if (header.payload / kMaxExpansion > file_size) wrong_length(path, header.payload);
  require_memory(path.string(), header.payload);
  std::string values(header.payload, '\0');
  char extra = 0;
  if (reader.read(values.data(), values.size()) != values.size() || reader.read(&extra, 1) != 0)
    wrong_length(path, header.payload);
  std::uint64_t stride = header.payload / header.sizes[0];
  return {path, std::move(header), RowFile(path, std::move(values), stride)};
}

class IdxSource final : public Source {
 public:
  IdxSource(IdxFile images, std::optional<IdxFile> labels) : images_(std::move(images)), labels_(std::move(labels)) {
    const std::string path = images_.path.string();
    if (images_.header.sizes.size() < 3)
      bad_input("{}: has {} axes, but images have 3 or 4", path, images_.header.sizes.size());
    shape_.assign(images_.header.sizes.begin(), images_.header.sizes.end());
    type_ = type_of_array(path, shape_);
    if (!labels_) return;
    if (labels_->header.sizes.size() != 1)
      bad_input("{}: has {} axes, but labels have one", labels_->path.string(), labels_->header.sizes.size());
    if (labels_->header.sizes[0] != images_.header.sizes[0])
      bad_input("{} holds {}, but {} holds {}", path, counted(images_.header.sizes[0], "image"), labels_->path.string(),
                counted(labels_->header.sizes[0], "label"));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(images_.header.sizes[0]); }

  at::Tensor labels() override {
    if (!labels_) return no_labels(size());
    at::Tensor bytes = at::empty({size()}, at::kByte);
    auto n = static_cast<std::uint64_t>(size());
    // Labels are one byte a row: all of them are one read from row 0.
    labels_->rows.read(0, 0, n, bytes.data_ptr<std::uint8_t>());
    return bytes.to(at::kLong);
  }

  SampleType type(std::int64_t) override { return type_; }

  at::Tensor values(const std::vector<std::int64_t>& rows, std::int64_t) override {
    require_memory(images_.path.string(), type_.bytes() * rows.size());
    return images_from_array(images_.rows.array(rows, shape_), type_);
  }

 private:
  IdxFile images_;
  std::optional<IdxFile> labels_;
  std::vector<std::int64_t> shape_;
  SampleType type_;
};

// With or without ".gz", whichever exists.
std::optional<fs::path> either(const fs::path& path) {
  fs::path plain = path.extension() == ".gz" ? fs::path(path).replace_extension() : path;
  if (fs::is_regular_file(plain)) return plain;
  if (fs::path zipped = plain.string() + ".gz"; fs::is_regular_file(zipped)) return zipped;
  return std::nullopt;
}

// train-images-idx3-ubyte → train-labels-idx1-ubyte
std::optional<fs::path> idx_labels_beside(const fs::path& images) {
  std::string name = images.filename().string();
  std::size_t at = name.find("images");
  if (at == std::string::npos) return std::nullopt;
  name.replace(at, 6, "labels");
  for (const char* axes : {"idx3", "idx4"}) {
    if (std::size_t idx = name.find(axes); idx != std::string::npos) name.replace(idx, 4, "idx1");
  }
  return either(images.parent_path() / name);
}

std::optional<fs::path> standard_images(const fs::path& folder, const std::string& split) {
  std::string stem = split == "test" ? "t10k" : split;
  for (const char* axes : {"idx3", "idx4"}) {
    if (auto path = either(folder / (stem + "-images-" + axes + "-ubyte"))) return path;
  }
  return std::nullopt;
}

}  // namespace

bool is_idx(const fs::path& path) {
  if (fs::is_directory(path)) return standard_images(path, "train") || standard_images(path, "test");
  if (path.filename().string().find("idx") != std::string::npos) return true;
  std::string head = read_head(path, 4);
  return head.size() == 4 && (is_gzip(path) || (head[0] == 0 && head[1] == 0 && head[2] == kUnsignedByte));
}

std::unique_ptr<Source> open_idx(const OpenRequest& request) {
  fs::path images = request.path;
  if (fs::is_directory(request.path)) {
    auto found = standard_images(request.path, request.split);
    if (!found) bad_input("{}: has no {} split", request.path.string(), printable(request.split));
    images = *found;
  } else if (request.explicit_split) {
    bad_input("{}: is one file and has no {} split", request.path.string(), printable(request.split));
  }
  auto labels = idx_labels_beside(images);
  return std::make_unique<IdxSource>(open_file(images),
                                     labels ? std::optional<IdxFile>(open_file(*labels)) : std::nullopt);
}

}  // namespace galvani
