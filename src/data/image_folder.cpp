// Folders of image files: a folder a class, a labels.csv beside the files, or no labels at all.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <sstream>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/text.h"
#include "galvani/data/dataset.h"
#include "image_file.h"
#include "readers.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMaxTable = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxImageFile = std::uint64_t{512} << 20;

struct Listing {
  fs::path root;
  std::vector<fs::path> files;
  std::vector<std::int64_t> labels;
  std::vector<std::string> class_names;
};

bool hidden(const fs::path& path) {
  return path.filename().string().rfind('.', 0) == 0;
}

std::vector<fs::path> sorted_entries(const fs::path& folder, bool folders) {
  std::vector<fs::path> result;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (hidden(entry.path())) continue;
    bool wanted = folders ? entry.is_directory() : entry.is_regular_file() && has_image_extension(entry.path());
    if (wanted) result.push_back(entry.path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::optional<std::int64_t> to_number(const std::string& text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> read_lines(const fs::path& path) {
  std::istringstream stream(read_file(path, kMaxTable));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

struct Row {
  std::string file;
  std::string label;
};

std::vector<Row> read_table(const fs::path& folder, const fs::path& table) {
  std::vector<Row> rows;
  std::vector<std::string> lines = read_lines(table);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    std::vector<std::string> cells = split_csv_line(lines[i]);
    if (cells.size() < 2) bad_input("{}: line {} is not of the form file,label", table.string(), i + 1);
    fs::path file = cells[0];
    bool header = i == 0 && !fs::exists(folder / file);
    if (header && !has_image_extension(file)) continue;
    // A table from elsewhere must not make us open files outside its folder.
    bool outside = file.is_absolute() || std::find(file.begin(), file.end(), "..") != file.end();
    if (outside)
      bad_input("{}: line {} names '{}', which is outside its folder", table.string(), i + 1, printable(cells[0]));
    if (cells[0].find('\0') != std::string::npos || !fs::is_regular_file(folder / file))
      bad_input("{}: line {} names '{}', which does not exist", table.string(), i + 1, printable(cells[0]));
    rows.push_back({cells[0], cells[1]});
  }
  return rows;
}

// classes.txt fixes the order of the classes; without it the names in use are sorted.
std::vector<std::string> names_in(const fs::path& folder, const std::vector<Row>& rows) {
  if (fs::path path = folder / "classes.txt"; fs::is_regular_file(path)) {
    std::vector<std::string> lines = read_lines(path);
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }
  std::set<std::string> names;
  bool all_numbers = true;
  for (const Row& row : rows) {
    if (row.label.empty()) continue;
    all_numbers = all_numbers && to_number(row.label);
    names.insert(row.label);
  }
  if (all_numbers) return {};
  return {names.begin(), names.end()};
}

Listing list_table(const fs::path& folder, const fs::path& table) {
  std::vector<Row> rows = read_table(folder, table);
  Listing listing{folder, {}, {}, names_in(folder, rows)};
  std::map<std::string, std::int64_t> index;
  for (std::size_t i = 0; i < listing.class_names.size(); ++i)
    index.emplace(listing.class_names[i], static_cast<std::int64_t>(i));
  for (const Row& row : rows) {
    std::int64_t label = Dataset::kUnlabelled;
    if (auto it = index.find(row.label); it != index.end()) {
      label = it->second;
    } else if (auto number = to_number(row.label)) {
      label = *number;
    } else if (!row.label.empty()) {
      bad_input("{}: '{}' has label '{}', which is not in classes.txt", table.string(), printable(row.file),
                printable(row.label));
    }
    listing.files.push_back(folder / row.file);
    listing.labels.push_back(label);
  }
  return listing;
}

Listing list_folder(const fs::path& path) {
  if (fs::is_regular_file(path)) return {path, {path}, {Dataset::kUnlabelled}, {}};
  if (fs::path table = path / "labels.csv"; fs::is_regular_file(table)) return list_table(path, table);
  Listing listing{path, {}, {}, {}};
  for (const fs::path& folder : sorted_entries(path, true)) {
    std::vector<fs::path> files = sorted_entries(folder, false);
    listing.labels.insert(listing.labels.end(), files.size(), static_cast<std::int64_t>(listing.class_names.size()));
    listing.files.insert(listing.files.end(), files.begin(), files.end());
    listing.class_names.push_back(folder.filename().string());
  }
  if (!listing.files.empty()) return listing;
  listing.class_names.clear();
  listing.files = sorted_entries(path, false);
  listing.labels.assign(listing.files.size(), Dataset::kUnlabelled);
  return listing;
}

class FolderSource final : public Source {
 public:
  explicit FolderSource(Listing listing) : listing_(std::move(listing)) {
    if (listing_.files.empty()) bad_input("{}: holds no PNG, JPEG, BMP or PNM images", listing_.root.string());
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(listing_.files.size()); }
  at::Tensor labels() override { return label_tensor(listing_.labels); }
  std::vector<std::string> class_names() const override { return listing_.class_names; }

  at::Tensor images(const std::vector<std::int64_t>& rows) override {
    QuietDecoders quiet;
    const fs::path& first_path = file(rows.at(0));
    Image first = decode(first_path);
    at::Tensor result = empty_images(listing_.root.string(), static_cast<std::int64_t>(rows.size()), first.channels,
                                     first.height, first.width);
    auto* out = result.data_ptr<std::uint8_t>();
    workers().run(static_cast<std::int64_t>(rows.size()), [&](std::int64_t i, int) {
      check_interrupt();
      const fs::path& path = file(rows[static_cast<std::size_t>(i)]);
      Image image = i == 0 ? first : decode(path);
      if (image.channels != first.channels || image.height != first.height || image.width != first.width)
        bad_input("{}: images differ in size: {} is {} and {} is {}", listing_.root.string(),
                  first_path.filename().string(), shape(first), path.filename().string(), shape(image));
      std::copy(image.pixels.begin(), image.pixels.end(), out + i * static_cast<std::int64_t>(image.pixels.size()));
    });
    return result;
  }

 private:
  const fs::path& file(std::int64_t row) const { return listing_.files[static_cast<std::size_t>(row)]; }
  static Image decode(const fs::path& path) { return decode_image(read_file(path, kMaxImageFile), path.string()); }
  static std::string shape(const Image& image) {
    return fmt::format("{}x{} {}", image.width, image.height, image.channels == 1 ? "gray" : "colour");
  }

  Listing listing_;
};

// A folder with nothing but train/, test/ and the like holds splits, not classes.
bool holds_splits(const fs::path& folder) {
  static const std::set<std::string> names = {"train", "test", "val", "valid", "validation"};
  std::vector<fs::path> folders = sorted_entries(folder, true);
  return !folders.empty() && std::all_of(folders.begin(), folders.end(), [](const fs::path& path) {
    return names.count(path.filename().string()) > 0;
  });
}

}  // namespace

bool is_image_folder(const fs::path& path) {
  if (fs::is_directory(path) || has_image_extension(path)) return true;
  std::string head = read_head(path, 3);
  return head == "\x89PN" || head == "\xff\xd8\xff";
}

std::unique_ptr<Source> open_image_folder(const OpenRequest& request) {
  fs::path path = request.path;
  bool has_splits = fs::is_directory(path) && holds_splits(path);
  if (has_splits && fs::is_directory(path / request.split)) {
    path /= request.split;
  } else if (has_splits || request.explicit_split) {
    bad_input("{}: has no {} split", path.string(), printable(request.split));
  }
  return std::make_unique<FolderSource>(list_folder(path));
}

}  // namespace galvani
