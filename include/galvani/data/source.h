// Where inputs come from: a file, a folder, a generator. Size and labels are known before any value is read, so that
// a view reads only the rows it needs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "galvani/data/intake.h"
#include "galvani/data/sample.h"

namespace galvani {

struct FileSurvey {
  std::int64_t width = 0;  // as it is stored; of a sound its length in samples
  std::int64_t height = 0;
  int channels = 0;       // 1 or 3; 0: only decoding tells
  bool turned = false;    // an EXIF tag says that it is not upright as stored
  std::string fault;      // a sentence: the file is broken; empty: it is not, as far as was looked
  std::int64_t rate = 0;  // of a sound; 0: it is an image

  SampleType type() const;  // as it is stored; unknown channels count as colour
};

class Source {
 public:
  virtual ~Source() = default;

  virtual std::int64_t size() const = 0;
  // [N] int64, Labelled::kUnlabelled where unknown.
  virtual at::Tensor labels() = 0;
  // See Labelled.
  virtual at::Tensor answers() { return {}; }
  // Of one row; those of a folder may differ.
  virtual SampleType type(std::int64_t row) = 0;
  // [rows.size(), ...shape]. Error(bad_input) unless all are of the type of the row `like`. REQUIRES every row in
  // [0, size()), and one.
  virtual at::Tensor values(const std::vector<std::int64_t>& rows, std::int64_t like) = 0;
  virtual std::vector<std::string> class_names() const { return {}; }
  virtual bool sorted_classes() const { return false; }  // see Labelled
  // Of every row, relative to what was opened; empty: rows are not files.
  virtual std::vector<std::string> files() const { return {}; }

  // What the headers of files say of `rows`; empty: rows are not files. `thorough`: every one is decoded,
  // so that all that is broken is found.
  virtual std::vector<FileSurvey> survey(const std::vector<std::int64_t>& rows, bool thorough);
  // [rows.size(), ...target.shape]: images of any size, or sounds of any length, rate and channels, made into `target`.
  virtual at::Tensor fitted(const std::vector<std::int64_t>& rows, const Intake& intake, const SampleType& target);
};

// What a format's open function is given.
struct OpenRequest {
  std::filesystem::path path;
  std::string split;           // "train", "test", ...; meant only by files that hold several
  bool explicit_split{};       // the user wrote it, so a source without splits must refuse it
  std::int64_t clip_length{};  // sounds are cut to so many samples or padded with silence; 0: they stay as they are
};

struct Format {
  std::string name;
  std::string help;
  bool (*recognises)(const std::filesystem::path& path);
  std::unique_ptr<Source> (*open)(const OpenRequest& request);
};

// Every format that can be read, in the order they are asked.
const std::vector<Format>& formats();

// Opens a path in whichever format it is; Error(bad_input) if it does not exist or is none of them.
std::unique_ptr<Source> open_path(const OpenRequest& request);

}  // namespace galvani
