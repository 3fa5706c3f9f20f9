// Folders of image or sound files: a folder a class, a labels.csv beside the files, or no labels at all.
#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "audio_file.h"
#include "bounds.h"
#include "fit_image.h"
#include "fit_sound.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/text.h"
#include "galvani/data/labels.h"
#include "image_file.h"
#include "incomplete.h"
#include "notices.h"
#include "readers.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMaxTable = std::uint64_t{256} << 20;
constexpr std::int64_t kMostListened = std::int64_t{1} << 24;  // samples of a sound that are decoded to find it broken
constexpr std::uint64_t kMaxSampleFile = std::uint64_t{1} << 30;

// There may be millions of files, so their names are kept as short as they are.
struct Listing {
  fs::path root;    // what was asked for
  fs::path folder;  // what the names start from
  std::vector<std::string> files;
  std::vector<std::int64_t> labels;
  std::vector<std::string> class_names;
  bool sorted_classes = false;
  at::Tensor answers = {};
};

bool hidden(const fs::path& path) {
  return path.filename().string().rfind('.', 0) == 0;
}

using Wanted = bool (*)(const fs::path& path);  // by the extension

bool has_sample_extension(const fs::path& path) {
  return has_image_extension(path) || has_sound_extension(path);
}

template <class Take>
std::vector<fs::path> sorted_entries(const fs::path& folder, Take&& wanted) {
  std::vector<fs::path> result;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!hidden(entry.path()) && wanted(entry)) result.push_back(entry.path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  return sorted_entries(folder, [](const fs::directory_entry& entry) { return entry.is_directory(); });
}

std::vector<fs::path> files_in(const fs::path& folder, Wanted wanted) {
  return sorted_entries(
      folder, [&](const fs::directory_entry& entry) { return wanted(entry.path()) && entry.is_regular_file(); });
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
  std::vector<float> numbers;      // of all files, row by row; empty: what is right is a class
};

std::optional<float> to_float(const std::string& text) {
  float value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Numbers of a file, as long as every line has them.
class NumberColumns {
 public:
  void add(const std::vector<std::string>& cells) {
    if (!good_) return;
    good_ = rows_ == 0 || cells.size() == cells_;
    cells_ = cells.size();
    for (std::size_t i = 1; i < cells.size() && good_; ++i) {
      std::optional<float> number = to_float(cells[i]);
      good_ = number.has_value();
      if (!good_) return;
      numbers_.push_back(*number);
      whole_ = whole_ && to_number(cells[i]).has_value();
    }
    ++rows_;
  }
  // One whole number a file is a class.
  std::vector<float> taken() {
    return good_ && rows_ > 0 && (cells_ > 2 || !whole_) ? std::move(numbers_) : std::vector<float>();
  }

 private:
  std::vector<float> numbers_;
  std::size_t cells_ = 0;
  std::size_t rows_ = 0;
  bool good_ = true;
  bool whole_ = true;
};

LabelTable read_table(const fs::path& folder, const fs::path& table) {
  LabelTable result;
  NumberColumns columns;
  std::unordered_map<std::string, std::size_t> known;
  for_each_line(table, [&](std::string_view line, std::size_t number) {
    check_interrupt();
    if (line.empty()) return;
    std::vector<std::string> cells = split_csv_line(line);
    if (cells.size() < 2) bad_input("{}: line {} is not of the form file,label", table.string(), number);
    fs::path file = cells[0];
    bool header = number == 1 && !fs::exists(folder / file);
    if (header && !has_sample_extension(file)) return;
    // A table from elsewhere must not make us open files outside its folder.
    bool outside = file.is_absolute() || std::find(file.begin(), file.end(), "..") != file.end();
    if (outside)
      bad_input("{}: line {} names '{}', which is outside its folder", table.string(), number, printable(cells[0]));
    if (cells[0].find('\0') != std::string::npos || !fs::is_regular_file(folder / file))
      bad_input("{}: line {} names '{}', which does not exist", table.string(), number, printable(cells[0]));
    columns.add(cells);
    auto [word, fresh] = known.emplace(cells[1], result.words.size());
    if (fresh) result.words.push_back(cells[1]);
    result.files.push_back(std::move(cells[0]));
    result.labels.push_back(word->second);
  });
  result.numbers = columns.taken();
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
  if (!rows.numbers.empty()) {
    auto n = static_cast<std::int64_t>(rows.files.size());
    std::vector<std::int64_t> none(rows.files.size(), Labelled::kUnlabelled);
    return {folder, folder, std::move(rows.files), none, {}, false, at::tensor(rows.numbers, at::kFloat).view({n, -1})};
  }
  Listing listing{folder, folder, std::move(rows.files), {}, names_in(folder, rows.words), false};
  listing.sorted_classes = !listing.class_names.empty() && !fs::is_regular_file(folder / "classes.txt");
  std::map<std::string, std::int64_t> index;
  for (std::size_t i = 0; i < listing.class_names.size(); ++i)
    index.emplace(listing.class_names[i], static_cast<std::int64_t>(i));
  std::vector<std::optional<std::int64_t>> label_of;
  for (const std::string& word : rows.words) {
    auto it = index.find(word);
    label_of.push_back(it != index.end() ? it->second : word.empty() ? Labelled::kUnlabelled : to_number(word));
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

Listing list_files(const fs::path& path, Wanted wanted) {
  Listing listing{path, path, {}, {}, {}, true};
  for (const fs::path& folder : folders_in(path)) {
    std::vector<fs::path> files = files_in(folder, wanted);
    listing.labels.insert(listing.labels.end(), files.size(), static_cast<std::int64_t>(listing.class_names.size()));
    listing.class_names.push_back(folder.filename().string());
    for (const fs::path& file : files) listing.files.push_back((folder.filename() / file.filename()).string());
  }
  if (!listing.files.empty()) return listing;
  listing.class_names.clear();
  listing.sorted_classes = false;
  for (const fs::path& file : files_in(path, wanted)) listing.files.push_back(file.filename().string());
  listing.labels.assign(listing.files.size(), Labelled::kUnlabelled);
  return listing;
}

Listing list_folder(const fs::path& path) {
  if (fs::is_regular_file(path))
    return {path, path.parent_path(), {path.filename().string()}, {Labelled::kUnlabelled}, {}, false};
  if (fs::exists(path / kIncompleteMark))
    bad_input("{}: is an export that did not come to its end; remove it and export again", path.string());
  if (fs::path table = path / "labels.csv"; fs::is_regular_file(table)) return list_table(path, table);
  // Sounds among images do not count, as other files do not.
  Listing images = list_files(path, has_image_extension);
  if (!images.files.empty()) return images;
  Listing sounds = list_files(path, has_sound_extension);
  if (Listing unread = list_files(path, has_unread_sound_extension); !unread.files.empty())
    notices::warn("{}: {} left out ({}): sounds are read from WAV, AIFF and FLAC files", path.string(),
                  counted(static_cast<std::int64_t>(unread.files.size()), "file is", "files are"),
                  printable(unread.files.front()) + (unread.files.size() > 1 ? ", ..." : ""));
  return sounds;
}

class FolderSource final : public Source {
 public:
  FolderSource(Listing listing, std::int64_t clip_length) : listing_(std::move(listing)), clip_length_(clip_length) {
    if (listing_.files.empty())
      bad_input("{}: holds no PNG, JPEG, WebP, TIFF, BMP or PNM images and no WAV, AIFF or FLAC sounds",
                listing_.root.string());
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(listing_.files.size()); }
  at::Tensor labels() override { return label_tensor(listing_.labels); }
  at::Tensor answers() override { return listing_.answers; }
  std::vector<std::string> class_names() const override { return listing_.class_names; }
  bool sorted_classes() const override { return listing_.sorted_classes; }
  std::vector<std::string> files() const override { return listing_.files; }

  std::vector<FileSurvey> survey(const std::vector<std::int64_t>& rows, bool thorough) override {
    std::vector<FileSurvey> result(rows.size());
    QuietDecoders quiet;
    workers().run(size_of(rows), [&](std::int64_t i, int) {
      check_interrupt();
      fs::path path = file(rows[static_cast<std::size_t>(i)]);
      FileSurvey& found = result[static_cast<std::size_t>(i)];
      try {
        if (is_sound_file(path)) {
          SoundInfo info = sound_info(path);
          found = {info.length, 0, static_cast<int>(info.channels), false, "", info.rate};
          if (thorough) read_sound(path, std::min(info.length, kMostListened));
          return;
        }
        ImageInfo info = look_at_image(path);
        found = {info.width, info.height, info.channels, info.orientation != 1, "", 0};
        if (thorough) decode_image(read_file(path, kMaxSampleFile), path.string());
      } catch (const Error& e) {
        found.fault = e.what();
      } catch (const fs::filesystem_error& e) {
        found.fault = fmt::format("{}: cannot be read: {}", path.string(), e.code().message());
      }
    });
    return result;
  }

  at::Tensor fitted(const std::vector<std::int64_t>& rows, const Intake& intake, const SampleType& target) override {
    QuietDecoders quiet;
    require_memory(listing_.root.string(), target.bytes() * rows.size());
    at::Tensor result = at::empty(target.batch(size_of(rows)), target.dtype());
    auto* out = static_cast<std::uint8_t*>(result.data_ptr());
    workers().run(size_of(rows), [&](std::int64_t i, int) {
      check_interrupt();
      fs::path path = file(rows[static_cast<std::size_t>(i)]);
      std::uint8_t* own = out + static_cast<std::size_t>(i) * target.bytes();
      if (target.kind == SampleKind::image) {
        fit_image(decode_image(read_file(path, kMaxSampleFile), path.string()), intake, target.shape, own,
                  path.string());
        return;
      }
      std::int64_t needed = samples_needed(target, look_at_sound(path).rate);
      if (clip_length_ > 0) needed = std::min(needed, clip_length_);
      fit_sound(read_sound(path, needed), target, reinterpret_cast<std::int16_t*>(own), path.string());
    });
    return result;
  }

  SampleType type(std::int64_t row) override {
    QuietDecoders quiet;
    if (typed_row_ != row) type_ = type_of(file(row));
    typed_row_ = row;
    return type_;
  }

  at::Tensor values(const std::vector<std::int64_t>& rows, std::int64_t like) override {
    SampleType wanted = type(like);
    QuietDecoders quiet;
    auto n = static_cast<std::int64_t>(rows.size());
    require_memory(listing_.root.string(), wanted.bytes() * rows.size());
    at::Tensor result = at::empty(wanted.batch(n), wanted.dtype());
    auto* out = static_cast<char*>(result.data_ptr());
    workers().run(n, [&](std::int64_t i, int) {
      check_interrupt();
      fs::path path = file(rows[static_cast<std::size_t>(i)]);
      Sample sample = decode(path);
      if (sample.type != wanted)
        bad_input("{}: {}: {} is {} and {} is {}", listing_.root.string(),
                  wanted.kind == SampleKind::image
                      ? "images differ in size or colour"
                      : "clips differ, but must be of one length ([length=...] cuts or pads them), rate and channels",
                  file(like).filename().string(), describe(wanted), path.filename().string(), describe(sample.type));
      std::memcpy(out + static_cast<std::size_t>(i) * wanted.bytes(), sample.values.data_ptr(), wanted.bytes());
    });
    return result;
  }

 private:
  static std::int64_t size_of(const std::vector<std::int64_t>& rows) { return static_cast<std::int64_t>(rows.size()); }
  fs::path file(std::int64_t row) const { return listing_.folder / listing_.files[static_cast<std::size_t>(row)]; }
  static bool is_sound_file(const fs::path& path) { return has_sound_extension(path) || is_sound(read_head(path, 12)); }
  // As [length=...] leaves it.
  SoundInfo sound_info(const fs::path& path) const {
    SoundInfo info = look_at_sound(path);
    if (clip_length_ > 0) info.length = clip_length_;
    return info;
  }
  SampleType type_of(const fs::path& path) const {
    if (!is_sound_file(path)) return decode(path).type;
    SoundInfo info = sound_info(path);
    return SampleType::audio(info.channels, info.length, info.rate);
  }
  Sample decode(const fs::path& path) const {
    if (!is_sound_file(path)) return decode_sample(read_file(path, kMaxSampleFile), path.string());
    Sound sound = read_sound(path, clip_length_);
    SampleType own = SampleType::audio(sound.channels, sound.length, sound.rate);
    Sample sample{own, at::from_blob(sound.samples.data(), own.shape, at::kShort).clone()};
    if (std::int64_t missing = clip_length_ - sound.length; clip_length_ > 0 && missing > 0) {
      sample.type.shape[1] = clip_length_;
      sample.values = at::constant_pad_nd(sample.values, {0, missing});
    }
    return sample;
  }
  static std::string describe(const SampleType& type) {
    if (type.kind == SampleKind::audio) return type.shape_text();
    return fmt::format("{}x{} {}", type.shape[2], type.shape[1], type.shape[0] == 1 ? "gray" : "colour");
  }

  Listing listing_;
  std::int64_t clip_length_;
  std::int64_t typed_row_ = -1;
  SampleType type_;  // of that row
};

// A folder with nothing but train/, test/ and the like holds splits, not classes.
bool holds_splits(const fs::path& folder) {
  static const std::set<std::string> names = {"train", "test", "val", "valid", "validation"};
  std::vector<fs::path> folders = folders_in(folder);
  return !folders.empty() && std::all_of(folders.begin(), folders.end(), [](const fs::path& path) {
    return names.count(path.filename().string()) > 0;
  });
}

}  // namespace

bool is_sample_folder(const fs::path& path) {
  if (fs::is_directory(path) || has_sample_extension(path)) return true;
  std::string head = read_head(path, 12);
  bool webp = head.substr(0, 4) == "RIFF" && head.size() == 12 && head.substr(8) == "WEBP";
  return head.substr(0, 3) == "\x89PN" || head.substr(0, 3) == "\xff\xd8\xff" || webp || is_sound(head);
}

std::unique_ptr<Source> open_sample_folder(const OpenRequest& request) {
  fs::path path = request.path;
  bool has_splits = fs::is_directory(path) && holds_splits(path);
  if (has_splits && fs::is_directory(path / request.split)) {
    path /= request.split;
  } else if (has_splits || request.explicit_split) {
    bad_input("{}: has no {} split", path.string(), printable(request.split));
  }
  return std::make_unique<FolderSource>(list_folder(path), request.clip_length);
}

}  // namespace galvani
