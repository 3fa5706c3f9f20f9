#include "galvani/data/export.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/output_file.h"
#include "galvani/base/parallel.h"
#include "galvani/base/text.h"
#include "galvani/data/npy.h"
#include "incomplete.h"

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

constexpr std::int64_t kTogether = 1024;  // inputs that are fetched and written at a time

std::string file_name(std::int64_t index, const SampleType& type) {
  return fmt::format("{:06}{}", index, type.extension());
}

void write_samples(const DataView& data, const fs::path& folder) {
  const SampleType& type = data.type();
  std::int64_t channels = type.shape[0];
  if (type.kind == SampleKind::image && channels != 1 && channels != 3)
    bad_usage("{}: images of {} channels cannot be written as PNG", data.name, channels);
  data.for_each_piece(kTogether, [&](const at::Tensor& rows, std::int64_t first) {
    const auto* values = static_cast<const char*>(rows.data_ptr());
    workers().run(rows.size(0), [&](std::int64_t i, int) {
      write_file(folder / file_name(first + i, type), type.encode(values + static_cast<std::size_t>(i) * type.bytes()));
    });
  });
}

// Both files beside the inputs have a line for a name.
std::string one_line(std::string name) {
  for (char& c : name) {
    if (c == '\n' || c == '\r' || c == '\0') c = '?';
  }
  return name;
}

// What stands beside the inputs: labels.csv and, if there are class names, classes.txt.
void write_labels(const DataView& data, const fs::path& folder) {
  Labelled names;
  for (const std::string& each : data.class_names) names.class_names.push_back(one_line(each));
  if (!names.class_names.empty()) {
    std::string classes;
    for (const std::string& each : names.class_names) classes += each + "\n";
    write_file(folder / "classes.txt", classes);
  }
  OutputFile table(folder / "labels.csv");
  if (data.answers.defined()) {
    // With a decimal point, so that they are read back as numbers.
    std::string titles = "file";
    for (std::int64_t k = 0; k < data.answers.size(1); ++k) titles += fmt::format(",answer{}", k);
    table.write(titles + "\n");
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const float* row = data.answers.data_ptr<float>() + i * data.answers.size(1);
      table.write(
          fmt::format("{},{:#.9g}\n", file_name(i, data.type()), fmt::join(row, row + data.answers.size(1), ",")));
    }
    return table.commit();
  }
  table.write("file,label\n");
  auto labels = data.labels.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < data.size(); ++i) {
    std::int64_t label = labels[i];
    table.write(fmt::format("{},{}\n", file_name(i, data.type()),
                            label == Labelled::kUnlabelled ? "" : csv_cell(names.class_name(label))));
  }
  table.commit();
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

// Formats that hold images alone.
void check_images(const Dataset& data) {
  validate(data);
  if (data.type().kind != SampleKind::image)
    bad_usage("{}: npz and idx files hold images, not {}; a folder (--to folder) holds these", data.name,
              data.type().noun());
}

}  // namespace

void write_sample_folder(const DataView& data, const fs::path& folder,
                         const std::function<void(const fs::path&)>& also) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    bad_usage("{}: exists and is not empty", folder.string());
  fs::path target = fs::absolute(folder).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/" names out
  auto fill = [&](const fs::path& place) {
    fs::path mark = place / kIncompleteMark;
    write_file(mark, "This export did not come to its end. Remove the folder and export again.\n");
    write_samples(data, place);
    if (also) also(place);
    write_labels(data, place);
    fs::remove(mark);
  };
  // An empty folder that is there may be all that this process can write to.
  if (fs::exists(target, error)) {
    fill(target);
    return;
  }
  make_folder(target.parent_path());
  std::string work = (target.parent_path() / (target.filename().string() + ".incomplete-XXXXXX")).string();
  if (::mkdtemp(work.data()) == nullptr) fail(ErrorCode::environment, "{}: cannot be written", folder.string());
  try {
    fs::permissions(work, fs::perms(0755));
    fill(work);
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
  check_images(data);
  NamedTensors tensors;
  tensors.emplace_back("images", data.channels() == 1 ? data.images.squeeze(1) : data.images.permute({0, 2, 3, 1}));
  if (data.answers.defined())
    tensors.emplace_back("labels", data.answers);
  else if (has_any_label(data))
    tensors.emplace_back("labels", data.labels);
  write_npz(path, tensors, Compression::deflate);
}

void write_idx(const Dataset& data, const fs::path& folder, const std::string& stem) {
  check_images(data);
  bool labelled = has_any_label(data);
  if (labelled && !data.labelled()) bad_usage("{}: idx cannot hold images with and without labels", data.name);
  if (data.classes() > 256)
    bad_usage("{}: idx holds labels up to 255, but there are {} classes", data.name, data.classes());
  make_folder(folder);
  bool gray = data.channels() == 1;
  fs::path images = folder / fmt::format("{}-images-idx{}-ubyte", stem, gray ? 3 : 4);
  // Labels first: images alone would look like data without labels.
  if (labelled) write_file(folder / (stem + "-labels-idx1-ubyte"), idx_bytes(data.labels.to(at::kByte)));
  write_file(images, idx_bytes(gray ? data.images.squeeze(1) : data.images));
}

}  // namespace galvani
