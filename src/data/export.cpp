#include "galvani/data/export.h"

#include <unistd.h>

#include "csv.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/data/npy.h"
#include "image_file.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

bool has_any_label(const Dataset& data) {
  return data.size() > 0 && data.labels.max().item<std::int64_t>() >= 0;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorCode::environment, "{}: cannot be made: {}", folder.string(), error.message());
}

void append_big_endian(std::string& out, std::int64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

std::string idx_bytes(const at::Tensor& bytes) {
  std::string out = {0, 0, 8, static_cast<char>(bytes.dim())};
  for (std::int64_t size : bytes.sizes()) append_big_endian(out, size);
  at::Tensor flat = bytes.contiguous();
  out.append(reinterpret_cast<const char*>(flat.data_ptr<std::uint8_t>()), static_cast<std::size_t>(flat.numel()));
  return out;
}

}  // namespace

void write_image_folder(const Dataset& data, const fs::path& folder) {
  validate(data);
  if (data.channels() != 1 && data.channels() != 3)
    bad_usage("{}: images of {} channels cannot be written as PNG", data.name, data.channels());
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    bad_usage("{}: exists and is not empty", folder.string());
  fs::path target = fs::absolute(folder).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/" names out
  make_folder(target.parent_path());
  std::string work = (target.parent_path() / ("." + target.filename().string() + ".XXXXXX")).string();
  if (::mkdtemp(work.data()) == nullptr) fail(ErrorCode::environment, "{}: cannot be written", folder.string());
  try {
    fs::permissions(work, fs::perms(0755));
    at::Tensor images = data.images.contiguous();
    const auto* pixels = images.data_ptr<std::uint8_t>();
    std::int64_t stride = data.channels() * data.height() * data.width();
    auto name = [](std::int64_t i) { return fmt::format("{:06}.png", i); };
    workers().run(data.size(), [&](std::int64_t i, int) {
      check_interrupt();
      write_file(fs::path(work) / name(i),
                 encode_png(pixels + i * stride, data.channels(), data.height(), data.width()));
    });
    std::string table = "file,label\n";
    auto labels = data.labels.accessor<std::int64_t, 1>();
    for (std::int64_t i = 0; i < data.size(); ++i) {
      std::string label = labels[i] == Dataset::kUnlabelled ? "" : csv_cell(data.class_name(labels[i]));
      table += fmt::format("{},{}\n", name(i), label);
    }
    std::string classes;
    for (const std::string& each : data.class_names) classes += each + "\n";
    if (!classes.empty()) write_file(fs::path(work) / "classes.txt", classes);
    write_file(fs::path(work) / "labels.csv", table);
    fs::rename(work, target);
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(work, error);
    fail(ErrorCode::environment, "{}: cannot be written: {}", folder.string(), e.code().message());
  } catch (...) {
    fs::remove_all(work, error);
    throw;
  }
}

void write_npz_dataset(const Dataset& data, const fs::path& path) {
  validate(data);
  NamedTensors tensors;
  tensors.emplace_back("images", data.channels() == 1 ? data.images.squeeze(1) : data.images.permute({0, 2, 3, 1}));
  if (has_any_label(data)) tensors.emplace_back("labels", data.labels);
  write_npz(path, tensors, Compression::deflate);
}

void write_idx(const Dataset& data, const fs::path& folder, const std::string& stem) {
  validate(data);
  bool labelled = has_any_label(data);
  if (labelled && !data.labelled()) bad_usage("{}: idx cannot hold images with and without labels", data.name);
  if (data.classes() > 256)
    bad_usage("{}: idx holds labels up to 255, but there are {} classes", data.name, data.classes());
  make_folder(folder);
  bool gray = data.channels() == 1;
  fs::path images = folder / fmt::format("{}-images-idx{}-ubyte", stem, gray ? 3 : 4);
  write_file(images, idx_bytes(gray ? data.images.squeeze(1) : data.images));
  if (labelled) write_file(folder / (stem + "-labels-idx1-ubyte"), idx_bytes(data.labels.to(at::kByte)));
}

}  // namespace galvani
