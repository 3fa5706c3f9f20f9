#include "fuzz/record.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/fuzz/guide.h"
#include "galvani/fuzz/scheduler.h"
#include "galvani/generate/generator.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

std::string join_numbers(const std::vector<double>& numbers, double fallback) {
  return numbers.empty() ? fmt::format("{}", fallback) : fmt::format("{}", fmt::join(numbers, ","));
}

std::string hash_of(const Profile* profile) {
  return profile == nullptr || profile->empty() ? "" : profile->parts_hash();
}

}  // namespace

CampaignRecord make_record(const CampaignSettings& settings, const CampaignSubject& subject) {
  Network& network = subject.tracer.network();
  const NetworkInfo& info = network.info();
  const Preprocess& preprocess = network.card().preprocess;
  CampaignRecord record;
  record.settings = settings;
  record.settings.guide = guides().options(Spec::parse(settings.guide)).str();
  record.settings.scheduler = schedulers().options(Spec::parse(settings.scheduler)).str();
  record.settings.generator = resolved_generator(Spec::parse(settings.generator), subject.data.type().kind);
  record.version = GALVANI_VERSION;
  std::error_code error;
  fs::path absolute = fs::absolute(info.path, error);
  record.model = error ? info.path : absolute.string();
  record.model_sha256 = info.sha256;
  record.classes = info.classes;
  record.input = SampleType::of(info.input, subject.data.rate).str();
  record.preprocess.range = fmt::format("{}..{}", preprocess.low, preprocess.high);
  record.preprocess.mean = join_numbers(preprocess.mean, 0);
  record.preprocess.deviation = join_numbers(preprocess.deviation, 1);
  record.preprocess.channels = preprocess.bgr ? "bgr" : "rgb";
  record.preprocess.layout = preprocess.channels_last ? "nhwc" : "nchw";
  record.preprocess.input = record.input;
  record.preprocess_assumed = !network.card().preprocess_known;
  // What images and labels became is in the hash of the data; these make the same of the files again.
  const Intake& intake = network.card().intake;
  if (intake.resize != Intake::Resize::automatic) record.preprocess.resize = intake.resize_text();
  if (intake.crop != 0) record.preprocess.crop = std::to_string(intake.crop);
  record.preprocess.skip_broken = intake.skip_broken;
  record.preprocess.classes = network.card().classes_given;
  record.preprocess.head = network.card().head;
  if (network.card().label_shift != 0) record.preprocess.label_shift = std::to_string(network.card().label_shift);
  record.preprocess.output = network.card().output;
  // Found or stated, so that an older campaign of scores still says nothing of it.
  const Question& question = info.question;
  if (question.task != Task::classes) record.preprocess.task = to_string(question.task);
  bool thresholds = question.task == Task::binary || question.task == Task::multi_label;
  if (thresholds && network.card().threshold)
    record.preprocess.threshold = fmt::format("{}", *network.card().threshold);
  if (question.task == Task::regression) record.preprocess.tolerance = fmt::format("{}", question.tolerance);
  record.execution = network.execution();
  record.data = subject.data.name;
  record.data_sha256 = content_hash(subject.data);
  record.profile_sha256 = hash_of(subject.profile.get());
  if (!record.profile_sha256.empty()) record.profile = subject.profile_source;
  if (subject.style != nullptr) {
    record.style = subject.style->name;
    record.style_sha256 = content_hash(*subject.style);
  }
  return record;
}

void check_settings(const CampaignSettings& settings) {
  for_each_setting(settings, [](const SettingInfo& info, const auto& value) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (static_cast<double>(value) < info.low || static_cast<double>(value) > info.high)
        bad_usage("--{} is {}, but must be from {:.0f} to {:.0f}", info.name, value, info.low, info.high);
    } else if constexpr (std::is_same_v<T, std::string>) {
      // Empty: as usual.
      if (!info.choices.empty() && !value.empty() &&
          std::find(info.choices.begin(), info.choices.end(), value) == info.choices.end())
        bad_usage("--{} is '{}', but must be {}", info.name, printable(value),
                  fmt::format("{}", fmt::join(info.choices, " or ")));
    }
  });
  parse_island(settings.island);
  if (settings.batch * settings.energy > 1 << 24)
    bad_usage("--batch {} and --energy {} make {} candidates at a time, more than {}", settings.batch, settings.energy,
              settings.batch * settings.energy, 1 << 24);
}

void check_same(const CampaignRecord& record, const CampaignRecord& wanted, const fs::path& folder) {
  if (!record.profile_sha256.empty() && wanted.profile_sha256.empty() && record.settings.guide == wanted.settings.guide)
    bad_usage(
        "{}: is missing, and the campaign needs it; --train (--profile-size, or --profile) with what it was made of "
        "puts it back: {}",
        stored_profile(folder).string(), printable(record.profile, 200));
  std::vector<std::string> different = record.differences(wanted);
  if (!different.empty())
    bad_usage("{}: holds a campaign with other settings: {}; choose another folder with -o, or the same settings",
              folder.string(), fmt::format("{}", fmt::join(different, "; ")));
}

}  // namespace galvani
