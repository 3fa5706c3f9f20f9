// From a spec to data.
#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "bounds.h"
#include "classes.h"
#include "fit_image.h"
#include "galvani/base/error.h"
#include "galvani/data/catalogue.h"
#include "galvani/data/digits.h"
#include "galvani/data/memory.h"
#include "galvani/data/source.h"
#include "galvani/data/spec.h"
#include "galvani/data/view.h"
#include "notices.h"
#include "readers.h"

namespace galvani {
namespace {

using SourceRows = std::vector<std::int64_t>;

std::unique_ptr<Source> open_named(const CatalogueEntry& entry, const std::string& split) {
  if (entry.built_in()) return open_digits(split);
  if (split != "train" && split != "test")
    bad_usage("data '{}:{}': {} has no split '{}', only train and test", entry.name, printable(split), entry.name,
              printable(split));
  auto folder = data_folder(entry);
  if (!folder) bad_input("{} has not been fetched yet; run: galvani data get {}", entry.name, entry.name);
  return open_path({*folder, split, true, 0});
}

// Refuses files that are broken, or gives the positions of the others.
SourceRows whole_files(const std::vector<FileSurvey>& files, const Labelled& about, bool skip) {
  constexpr std::size_t kNamed = 3;
  SourceRows whole;
  std::string named;
  std::string first;
  std::size_t broken = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].fault.empty()) {
      whole.push_back(static_cast<std::int64_t>(i));
      continue;
    }
    if (broken == 0) first = files[i].fault;
    if (broken++ < kNamed) named += (named.empty() ? "" : ", ") + about.files[i];
  }
  if (broken == 0) return whole;
  if (files.size() == 1) bad_input("{}", first);
  if (broken > kNamed) named += ", ...";
  if (!skip && broken == 1) bad_input("{}; --skip-broken leaves it out", first);
  if (!skip)
    bad_input("{}: {} of {} files are broken: {} ({}); --skip-broken leaves them out", about.name, broken, files.size(),
              named, first);
  if (whole.empty()) bad_input("{}: all {} files are broken: {}", about.name, broken, first);
  notices::warn("{}: {} of {} files {} broken and left out: {} ({})", about.name, broken, files.size(),
                broken == 1 ? "is" : "are", named, first);
  return whole;
}

std::string size_text(std::int64_t width, std::int64_t height) {
  return fmt::format("{}x{}", width, height);
}

// Says once what becomes of images that are not as the model takes them.
void tell_fitting(const std::vector<FileSurvey>& files, const std::string& name, const InputNeeds& needs) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> sizes;
  std::int64_t gray = 0;
  std::int64_t colour = 0;
  std::int64_t left_turned = 0;
  for (const FileSurvey& file : files) {
    bool sized = file.width == needs.shape[2] && file.height == needs.shape[1];
    if (!sized) ++sizes[{file.width, file.height}];
    gray += file.channels == 1 ? 1 : 0;
    colour += file.channels == 3 ? 1 : 0;
    left_turned += sized && file.turned && !needs.intake.stated() ? 1 : 0;
  }
  std::string target = size_text(needs.shape[2], needs.shape[1]);
  if (!sizes.empty()) {
    auto most =
        std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    std::string from = size_text(most->first.first, most->first.second);
    if (sizes.size() > 1) from += fmt::format(" and {} other size{}", sizes.size() - 1, sizes.size() > 2 ? "s" : "");
    bool stated = needs.intake.stated();
    notices::info("{}: images of {} are resized to {} ({}){}", name, from, target,
                  stated ? needs.intake.str() : "short side, then centre crop",
                  stated ? "" : "; --resize says otherwise");
  }
  if (needs.shape[0] == 3 && gray > 0)
    notices::info("{}: {} gray image{} made RGB, as the model takes three channels", name, gray,
                  gray == 1 ? " is" : "s are");
  if (needs.shape[0] == 1 && colour > 0)
    notices::info("{}: {} colour image{} made gray, as the model takes one channel", name, colour,
                  colour == 1 ? " is" : "s are");
  if (left_turned > 0)
    notices::warn("{}: {} image{} of {} not turned as the EXIF tag says; --resize exact turns {}", name, left_turned,
                  left_turned == 1 ? "" : "s", target + (left_turned == 1 ? " is" : " are"),
                  left_turned == 1 ? "it" : "them");
}

// The same of sounds.
void tell_sound_fitting(const std::vector<FileSurvey>& files, const std::string& name, const SampleType& target,
                        bool rate_known) {
  std::map<std::int64_t, std::int64_t> rates;
  std::int64_t mixed = 0, spread = 0, cut = 0, padded = 0;
  for (const FileSurvey& file : files) {
    if (file.rate != target.rate) ++rates[file.rate];
    mixed += file.channels > target.shape[0] ? 1 : 0;
    spread += file.channels < target.shape[0] ? 1 : 0;
    double seconds = static_cast<double>(file.width) / static_cast<double>(file.rate);
    double wanted = static_cast<double>(target.shape[1]) / static_cast<double>(target.rate);
    cut += seconds > wanted ? 1 : 0;
    padded += seconds < wanted ? 1 : 0;
  }
  std::string done;
  auto say = [&](std::int64_t count, const std::string& what) {
    if (count > 0) done += fmt::format("{}{} {}", done.empty() ? "" : ", ", count, what);
  };
  for (const auto& [rate, count] : rates) say(count, fmt::format("resampled from {} Hz", rate));
  say(mixed, "mixed to one channel");
  say(spread, fmt::format("repeated on {} channels", target.shape[0]));
  say(cut, fmt::format("cut to {} {:.3g} s", cut == 1 ? "its first" : "their first",
                       static_cast<double>(target.shape[1]) / static_cast<double>(target.rate)));
  say(padded, "padded with silence");
  if (!done.empty())
    log::info("{}: of {} clips, as the model takes {}: {}", name, files.size(), target.shape_text(), done);
  if (!rate_known)
    log::info("{}: the model does not say its rate, so the files' {} Hz are taken for it; --rate says otherwise", name,
              target.rate);
}

bool same_shape(const FileSurvey& file, const std::vector<std::int64_t>& shape) {
  return file.height == shape[1] && file.width == shape[2] && (file.channels == 0 || file.channels == shape[0]);
}

SourceRows rows_of_source(const SourceRows& rows, const SourceRows& wanted) {
  SourceRows result;
  result.reserve(wanted.size());
  for (std::int64_t row : wanted) result.push_back(rows[static_cast<std::size_t>(row)]);
  return result;
}

// Rows of a source, each made into `target` when it is fetched.
DataView fitted_view(const Labelled& about, const SampleType& target, const std::shared_ptr<Source>& source,
                     const SourceRows& rows, const Intake& intake) {
  return {about, target, [source, rows, intake, target](const SourceRows& wanted) {
            return source->fitted(rows_of_source(rows, wanted), intake, target);
          }};
}

}  // namespace

OpenedData::OpenedData(const std::string& spec, const std::string& default_split) {
  for (DataSpec part : parse_data_specs(spec)) {
    bool explicit_split = !part.split.empty();
    std::string split = explicit_split ? part.split : default_split;
    const CatalogueEntry* entry = part.is_path ? nullptr : find_catalogue_entry(part.source);
    if (entry != nullptr) part.split = split;
    std::shared_ptr<Source> source = entry != nullptr ? open_named(*entry, split)
                                     : part.is_in_memory()
                                         ? open_memory(split)
                                         : open_path({part.source, split, explicit_split, part.clip_length()});
    Labelled all{
        part.str(),      source->labels(),         entry != nullptr ? entry->class_names : source->class_names(),
        source->files(), source->sorted_classes(), source->answers()};
    SourceRows rows = select_rows(part.selectors, all.labels, all.class_names, all.name);
    parts_.push_back({subset_of(all, rows), source, rows});
    if (part.clip_length() == 0) continue;
    SampleType type = source->type(rows[0]);
    if (type.kind != SampleKind::audio)
      bad_usage("data '{}': only sounds have a length, but these are {}", all.name, type.noun());
  }
}

SampleType OpenedData::type() const {
  const Part& part = parts_.front();
  for (std::int64_t row : part.rows) {
    try {
      return part.source->type(row);
    } catch (const Error&) {
      // What is broken is counted when it is known whether it may be left out.
    }
  }
  return part.source->type(part.rows[0]);
}

DataView OpenedData::view(const InputNeeds& needs) const {
  std::vector<DataView> views;
  views.reserve(parts_.size());
  for (const Part& part : parts_) views.push_back(view_of(part, needs));
  return concatenate(views);
}

DataView OpenedData::view_of(const Part& part, const InputNeeds& needs) {
  Labelled about = part.about;
  SourceRows rows = part.rows;
  const std::shared_ptr<Source>& source = part.source;
  std::vector<FileSurvey> files = source->survey(rows, needs.intake.skip_broken);
  if (!files.empty()) {
    SourceRows whole = whole_files(files, about, needs.intake.skip_broken);
    if (whole.size() < files.size()) {
      std::vector<FileSurvey> kept;
      SourceRows kept_rows;
      for (std::int64_t i : whole) {
        kept.push_back(files[static_cast<std::size_t>(i)]);
        kept_rows.push_back(rows[static_cast<std::size_t>(i)]);
      }
      about = subset_of(about, whole);
      files = std::move(kept);
      rows = std::move(kept_rows);
    }
  }
  SampleType type = source->type(rows[0]);
  if (type.kind == SampleKind::audio && needs.shape.size() == 2 && !files.empty()) {
    if (needs.classes > 0) match_classes(about, needs);
    SampleType target = SampleType::of(needs.shape, needs.rate > 0 ? needs.rate : type.rate);
    if (!needs.model.empty()) tell_sound_fitting(files, about.name, target, needs.rate > 0);
    return fitted_view(about, target, source, rows, needs.intake);
  }
  bool for_images = needs.shape.size() == 3 && (needs.shape[0] == 1 || needs.shape[0] == 3);
  bool to_fit = type.kind == SampleKind::image && for_images;
  if (to_fit && needs.intake.stated()) check_intake(needs.intake, needs.shape);
  if (needs.classes > 0) match_classes(about, needs);
  if (to_fit) {
    // Arrays of another size are rather a mistake than photos: they are fitted if somebody says so.
    bool may_fit = !files.empty() || needs.intake.stated();
    if (files.empty()) files = {{type.shape[2], type.shape[1], static_cast<int>(type.shape[0]), false, ""}};
    bool as_is =
        !needs.intake.stated() && type.shape == needs.shape &&
        std::all_of(files.begin(), files.end(), [&](const FileSurvey& f) { return same_shape(f, needs.shape); });
    if (may_fit && !needs.model.empty()) tell_fitting(files, about.name, needs);
    if (may_fit && !as_is) return fitted_view(about, SampleType::of(needs.shape, 0), source, rows, needs.intake);
  }
  return {about, type,
          [source, rows](const SourceRows& wanted) { return source->values(rows_of_source(rows, wanted), rows[0]); }};
}

std::optional<SampleType> OpenedData::common_type() const {
  constexpr std::size_t kLookedAt = 64;
  SampleType first = type();
  for (const Part& part : parts_) {
    SourceRows some;
    std::size_t step = std::max<std::size_t>(1, part.rows.size() / kLookedAt);
    for (std::size_t i = 0; i < part.rows.size(); i += step) some.push_back(part.rows[i]);
    for (const FileSurvey& file : part.source->survey(some, /*thorough=*/false)) {
      bool same = file.rate > 0
                      ? file.type() == first
                      : file.width == first.shape.back() && file.height == first.shape[first.shape.size() - 2];
      if (file.fault.empty() && !same) return std::nullopt;
    }
  }
  return first;
}

std::vector<std::pair<SampleType, std::int64_t>> OpenedData::sizes() const {
  std::vector<std::pair<SampleType, std::int64_t>> result;
  std::map<std::string, std::size_t> known;  // sounds may be as many sizes as files
  auto count = [&](const SampleType& type, std::int64_t n) {
    auto [place, fresh] = known.emplace(type.str(), result.size());
    if (fresh) result.emplace_back(type, 0);
    result[place->second].second += n;
  };
  for (const Part& part : parts_) {
    std::vector<FileSurvey> files = part.source->survey(part.rows, /*thorough=*/false);
    if (files.empty()) count(part.source->type(part.rows[0]), static_cast<std::int64_t>(part.rows.size()));
    for (const FileSurvey& file : files) {
      if (file.fault.empty()) count(file.type(), 1);
    }
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return result;
}

DataView open_data(const std::string& spec, const std::string& default_split) {
  return OpenedData(spec, default_split).view();
}

Dataset load_data(const std::string& spec, const std::string& default_split) {
  return open_data(spec, default_split).load();
}

}  // namespace galvani
