// Folders of image files: a folder a class, a labels.csv beside the files, or no labels at all.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/text.h"
#include "galvani/data/dataset.h"
#include "image_file.h"
#include "incomplete.h"
#include "readers.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMaxTable = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxImageFile = std::uint64_t{512} << 20;

// There may be millions of files, so their names are kept as short as they are.
struct Listing {
  fs::path root;    // what was asked for
  fs::path folder;  // what the names start from
  std::vector<std::string> files;
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

// Calls `take` with every line and its number, from 1.
template <class Take>
void for_each_line(const fs::path& path, Take&& take) {
  std::string text = read_file(path, kMaxTable);
  std::size_t number = 0;
  for (std::size_t start = 0; start < text.size();) {
    std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = std::string_view(text).substr(start, end - start);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    take(line, ++number);
    start = end + 1;
  }
}

// A labels.csv; the labels of its files are numbers of words.
struct LabelTable {
  std::vector<std::string> files;
  std::vector<std::size_t> labels;
  std::vector<std::string> words;  // in the order of their first use
};

LabelTable read_table(const fs::path& folder, const fs::path& table) {
  LabelTable result;
  std::unordered_map<std::string, std::size_t> known;
  for_each_line(table, [&](std::string_view line, std::size_t number) {
    check_interrupt();
    if (line.empty()) return;
    std::vector<std::string> cells = split_csv_line(line);
    if (cells.size() < 2) bad_input("{}: line {} is not of the form file,label", table.string(), number);
    fs::path file = cells[0];
    bool header = number == 1 && !fs::exists(folder / file);
    if (header && !has_image_extension(file)) return;
    // A table from elsewhere must not make us open files outside its folder.
    bool outside = file.is_absolute() || std::find(file.begin(), file.end(), "..") != file.end();
    if (outside)
      bad_input("{}: line {} names '{}', which is outside its folder", table.string(), number, printable(cells[0]));
    if (cells[0].find('\0') != std::string::npos || !fs::is_regular_file(folder / file))
      bad_input("{}: line {} names '{}', which does not exist", table.string(), number, printable(cells[0]));
    auto [word, fresh] = known.emplace(cells[1], result.words.size());
    if (fresh) result.words.push_back(cells[1]);
    result.files.push_back(std::move(cells[0]));
    result.labels.push_back(word->second);
  });
  return result;
}

// classes.txt fixes the order of the classes; without it the names in use are sorted.
std::vector<std::string> names_in(const fs::path& folder, const std::vector<std::string>& words) {
  if (fs::path path = folder / "classes.txt"; fs::is_regular_file(path)) {
    std::vector<std::string> lines;
    for_each_line(path, [&](std::string_view line, std::size_t) { lines.emplace_back(line); });
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }
  std::set<std::string> names(words.begin(), words.end());
  names.erase("");
  bool all_numbers =
      std::all_of(names.begin(), names.end(), [](const std::string& name) { return to_number(name).has_value(); });
  if (all_numbers) return {};
  return {names.begin(), names.end()};
}

Listing list_table(const fs::path& folder, const fs::path& table) {
  LabelTable rows = read_table(folder, table);
  Listing listing{folder, folder, std::move(rows.files), {}, names_in(folder, rows.words)};
  std::map<std::string, std::int64_t> index;
  for (std::size_t i = 0; i < listing.class_names.size(); ++i)
    index.emplace(listing.class_names[i], static_cast<std::int64_t>(i));
  std::vector<std::optional<std::int64_t>> label_of;
  for (const std::string& word : rows.words) {
    auto it = index.find(word);
    label_of.push_back(it != index.end() ? it->second : word.empty() ? Dataset::kUnlabelled : to_number(word));
  }
  for (std::size_t i = 0; i < listing.files.size(); ++i) {
    const auto& label = label_of[rows.labels[i]];
    if (!label)
      bad_input("{}: '{}' has label '{}', which is not in classes.txt", table.string(), printable(listing.files[i]),
                printable(rows.words[rows.labels[i]]));
    listing.labels.push_back(*label);
  }
  return listing;
}

Listing list_folder(const fs::path& path) {
  if (fs::is_regular_file(path))
    return {path, path.parent_path(), {path.filename().string()}, {Dataset::kUnlabelled}, {}};
  if (fs::exists(path / kIncompleteMark))
    bad_input("{}: is an export that did not come to its end; remove it and export again", path.string());
  if (fs::path table = path / "labels.csv"; fs::is_regular_file(table)) return list_table(path, table);
  Listing listing{path, path, {}, {}, {}};
  for (const fs::path& folder : sorted_entries(path, true)) {
    std::vector<fs::path> files = sorted_entries(folder, false);
    listing.labels.insert(listing.labels.end(), files.size(), static_cast<std::int64_t>(listing.class_names.size()));
    listing.class_names.push_back(folder.filename().string());
    for (const fs::path& file : files) listing.files.push_back((folder.filename() / file.filename()).string());
  }
  if (!listing.files.empty()) return listing;
  listing.class_names.clear();
  for (const fs::path& file : sorted_entries(path, false)) listing.files.push_back(file.filename().string());
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
    fs::path first_path = file(rows.at(0));
    Image first = decode(first_path);
    at::Tensor result = empty_images(listing_.root.string(), static_cast<std::int64_t>(rows.size()), first.channels,
                                     first.height, first.width);
    auto* out = result.data_ptr<std::uint8_t>();
    workers().run(static_cast<std::int64_t>(rows.size()), [&](std::int64_t i, int) {
      check_interrupt();
      fs::path path = file(rows[static_cast<std::size_t>(i)]);
      Image image = i == 0 ? first : decode(path);
      if (image.channels != first.channels || image.height != first.height || image.width != first.width)
        bad_input("{}: images differ in size: {} is {} and {} is {}", listing_.root.string(),
                  first_path.filename().string(), shape(first), path.filename().string(), shape(image));
      std::copy(image.pixels.begin(), image.pixels.end(), out + i * static_cast<std::int64_t>(image.pixels.size()));
    });
    return result;
  }

 private:
  fs::path file(std::int64_t row) const { return listing_.folder / listing_.files[static_cast<std::size_t>(row)]; }
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
