#include "galvani/model/card.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <toml++/toml.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/json.h"
#include "galvani/base/nesting.h"
#include "galvani/base/text.h"
#include "galvani/data/sample.h"
#include "galvani/model/task.h"
#include "model/loops.h"

namespace galvani {
namespace {

using nlohmann::json;

struct Affine {
  std::vector<float> scale;
  std::vector<float> shift;
};

double of_channel(const std::vector<double>& values, std::int64_t channel, double fallback) {
  if (values.empty()) return fallback;
  return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(channel)];
}

// `axes` of [B, ...] values.
Affine affine(const Preprocess& p, std::int64_t channels, std::int64_t axes) {
  auto full = static_cast<double>(full_scale(axes));
  Affine result;
  for (std::int64_t c = 0; c < channels; ++c) {
    double deviation = of_channel(p.deviation, c, 1);
    result.scale.push_back(static_cast<float>((p.high - p.low) / full / deviation));
    result.shift.push_back(static_cast<float>((p.low - of_channel(p.mean, c, 0)) / deviation));
  }
  return result;
}

template <class Pixel>
void scale_planes(const Pixel* in, float* out, std::int64_t batch, std::int64_t channels, std::int64_t plane,
                  const Affine& map, bool reverse) {
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const Pixel* source = in + (n * channels + (reverse ? channels - 1 - c : c)) * plane;
      float* target = out + (n * channels + c) * plane;
      float scale = map.scale[static_cast<std::size_t>(c)];
      float shift = map.shift[static_cast<std::size_t>(c)];
      loops::scale_pixels(source, target, plane, scale, shift);
    }
  }
}

std::vector<double> parse_numbers(const std::string& flag, const std::string& text) {
  std::vector<double> result;
  std::size_t start = 0;
  while (start <= text.size()) {
    std::size_t comma = std::min(text.find(',', start), text.size());
    std::string part = text.substr(start, comma - start);
    char* end = nullptr;
    double value = std::strtod(part.c_str(), &end);
    if (part.empty() || *end != '\0' || !std::isfinite(value))
      bad_usage("{} is '{}', but must be numbers separated by commas", flag, printable(text));
    result.push_back(value);
    start = comma + 1;
  }
  return result;
}

std::pair<double, double> parse_range(const std::string& text) {
  std::size_t dots = text.find("..");
  if (dots != std::string::npos) {
    std::vector<double> low = parse_numbers("--range", text.substr(0, dots));
    std::vector<double> high = parse_numbers("--range", text.substr(dots + 2));
    if (low.size() == 1 && high.size() == 1 && low[0] < high[0]) return {low[0], high[0]};
  }
  bad_usage("--range is '{}', but must be like 0..1 or 0..255 or -1..1", printable(text));
}

bool parse_choice(const std::string& what, const std::string& text, const std::string& no, const std::string& yes,
                  ErrorCode code) {
  if (text == no) return false;
  if (text == yes) return true;
  fail(code, "{} is '{}', but must be {} or {}", what, printable(text), no, yes);
}

// `what` is the flag or key that was given.
void set_resize(Intake& intake, const std::string& text, const std::string& what, ErrorCode code) {
  constexpr std::int64_t kLargest = 16384;
  using Resize = Intake::Resize;
  intake.resize = text == "exact" ? Resize::exact
                  : text == "fit" ? Resize::fit
                  : text == "pad" ? Resize::pad
                                  : Resize::short_side;
  intake.side = 0;
  if (intake.resize != Resize::short_side) return;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), intake.side);
  bool good = error == std::errc() && end == text.data() + text.size() && intake.side >= 1 && intake.side <= kLargest;
  if (!good) fail(code, "{} is '{}', but must be exact, fit, pad or a number of pixels", what, printable(text));
}

void set_crop(Intake& intake, const std::string& text, const std::string& what, ErrorCode code) {
  constexpr std::int64_t kLargest = 16384;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), intake.crop);
  bool good = error == std::errc() && end == text.data() + text.size() && intake.crop >= 1 && intake.crop <= kLargest;
  if (!good) fail(code, "{} is '{}', but must be a number of pixels", what, printable(text));
}

void set_rate(ModelCard& card, const std::string& text, const std::string& what, ErrorCode code) {
  constexpr std::int64_t kHighest = 1'000'000;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), card.rate);
  bool good = error == std::errc() && end == text.data() + text.size() && card.rate >= 1 && card.rate <= kHighest;
  if (!good) fail(code, "{} is '{}', but must be samples a second, such as 16000", what, printable(text));
}

void set_label_shift(ModelCard& card, const std::string& text, const std::string& what, ErrorCode code) {
  constexpr std::int64_t kMost = 1 << 20;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), card.label_shift);
  bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || card.label_shift < -kMost || card.label_shift > kMost)
    fail(code, "{} is '{}', but must be what to add to a label for the class, such as 1 or -1", what, printable(text));
}

void check_head(const std::string& head, const std::string& what, ErrorCode code) {
  static const std::vector<std::string> kKnown = {"", "logits", "softmax", "log-softmax", "sigmoid"};
  if (std::find(kKnown.begin(), kKnown.end(), head) == kKnown.end())
    fail(code, "{} is '{}', but must be logits, softmax, log-softmax or sigmoid", what, printable(head));
}

void check_task(const std::string& task, const std::string& what, ErrorCode code) {
  if (!task.empty() && !task_of(task))
    fail(code, "{} is '{}', but must be classes, binary, multi-label or regression", what, printable(task));
}

double checked_threshold(double value, const std::string& what, ErrorCode code) {
  if (!(value > 0 && value < 1)) fail(code, "{} is {}, but must be a probability between 0 and 1", what, value);
  return value;
}

double checked_tolerance(double value, const std::string& what, ErrorCode code) {
  if (!(value > 0 && std::isfinite(value))) fail(code, "{} is {}, but must be above 0", what, value);
  return value;
}

double one_number(const std::string& flag, const std::string& text) {
  std::vector<double> numbers = parse_numbers(flag, text);
  if (numbers.size() != 1) bad_usage("{} is '{}', but must be one number", flag, printable(text));
  return numbers[0];
}

// A text or a number, as text.
std::string text_of(const json& value) {
  return value.is_number_integer() ? std::to_string(value.get<std::int64_t>()) : value.get<std::string>();
}

// Lines, a name each, or names separated by commas.
std::vector<std::string> parse_class_names(const std::string& text) {
  char by = text.find('\n') != std::string::npos ? '\n' : ',';
  std::vector<std::string> names(1);
  for (char c : text) {
    if (c == by) {
      names.emplace_back();
    } else if (c != '\r') {
      names.back() += c;
    }
  }
  if (by == '\n' && names.back().empty()) names.pop_back();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) bad_usage("--classes: the name of class {} is empty", i);
  }
  return names;
}

// TOML and JSON cards have the same keys, so both are read as JSON.
void read_into(ModelCard& card, const json& j, const std::string& where) {
  Preprocess& p = card.preprocess;
  try {
    for (const char* key : {"range", "mean", "std", "channels", "layout"}) card.preprocess_known |= j.contains(key);
    if (j.contains("range")) {
      auto range = j.at("range").get<std::vector<double>>();
      if (range.size() != 2 || !(range[0] < range[1])) bad_input("{}: 'range' must be [low, high]", where);
      p.low = range[0];
      p.high = range[1];
    }
    if (j.contains("mean")) p.mean = j.at("mean").get<std::vector<double>>();
    if (j.contains("std")) p.deviation = j.at("std").get<std::vector<double>>();
    if (j.contains("channels"))
      p.bgr =
          parse_choice(where + ": 'channels'", j.at("channels").get<std::string>(), "rgb", "bgr", ErrorCode::bad_input);
    if (j.contains("layout"))
      p.channels_last =
          parse_choice(where + ": 'layout'", j.at("layout").get<std::string>(), "nchw", "nhwc", ErrorCode::bad_input);
    if (j.contains("resize"))
      set_resize(card.intake, text_of(j.at("resize")), where + ": 'resize'", ErrorCode::bad_input);
    if (j.contains("crop")) set_crop(card.intake, text_of(j.at("crop")), where + ": 'crop'", ErrorCode::bad_input);
    if (j.contains("input")) card.input = j.at("input").get<std::vector<std::int64_t>>();
    if (j.contains("rate")) set_rate(card, text_of(j.at("rate")), where + ": 'rate'", ErrorCode::bad_input);
    if (j.contains("type")) card.number = j.at("type").get<std::string>();
    if (j.contains("head")) card.head = j.at("head").get<std::string>();
    if (j.contains("task")) card.task = j.at("task").get<std::string>();
    if (j.contains("output")) card.output = text_of(j.at("output"));
    if (j.contains("threshold"))
      card.threshold =
          checked_threshold(j.at("threshold").get<double>(), where + ": 'threshold'", ErrorCode::bad_input);
    if (j.contains("tolerance"))
      card.tolerance =
          checked_tolerance(j.at("tolerance").get<double>(), where + ": 'tolerance'", ErrorCode::bad_input);
    if (j.contains("classes")) card.class_names = j.at("classes").get<std::vector<std::string>>();
    if (j.contains("label_shift"))
      set_label_shift(card, text_of(j.at("label_shift")), where + ": 'label_shift'", ErrorCode::bad_input);
    if (j.contains("architecture")) card.architecture = j.at("architecture").get<std::string>();
    if (j.contains("data")) card.data = j.at("data").get<std::string>();
    if (j.contains("accuracy")) card.accuracy = j.at("accuracy").get<double>();
    if (j.contains("accuracy_data")) card.accuracy_data = j.at("accuracy_data").get<std::string>();
    if (j.contains("source")) card.source = j.at("source").get<std::string>();
    if (j.contains("licence")) card.licence = j.at("licence").get<std::string>();
    if (j.contains("first_domain")) card.first_domain = j.at("first_domain").get<std::vector<std::string>>();
    if (j.contains("second_domain")) card.second_domain = j.at("second_domain").get<std::vector<std::string>>();
  } catch (const json::exception& e) {
    bad_input("{}: the model card is wrong: {}", where, e.what());
  }
  if (card.input.size() > 3)
    bad_input("{}: 'input' must be [channels, height, width], [channels, length] of a sound, or [values]", where);
  if (!card.number.empty() && card.number != "float32" && card.number != "float16" && card.number != "uint8")
    bad_input("{}: 'type' is '{}', but must be float32, float16 or uint8", where, printable(card.number));
  check_head(card.head, where + ": 'head'", ErrorCode::bad_input);
  check_task(card.task, where + ": 'task'", ErrorCode::bad_input);
  for (std::int64_t n : card.input) {
    if (n < 1 || (card.input.size() == 3 && n > 65536)) bad_input("{}: 'input' has a side of {}", where, n);
  }
}

}  // namespace

at::Tensor Preprocess::apply(const at::Tensor& inputs) const {
  std::int64_t channels = inputs.size(1);
  at::Tensor source = inputs.contiguous();
  at::Tensor result = at::empty(inputs.sizes(), at::kFloat);
  std::int64_t plane = inputs.numel() / std::max<std::int64_t>(1, inputs.size(0) * channels);
  Affine map = affine(*this, channels, inputs.dim());
  auto* out = result.data_ptr<float>();
  auto scale = [&](const auto* values) { scale_planes(values, out, inputs.size(0), channels, plane, map, bgr); };
  if (source.scalar_type() == at::kByte) {
    scale(source.data_ptr<std::uint8_t>());
  } else if (source.scalar_type() == at::kShort) {
    scale(source.data_ptr<std::int16_t>());
  } else {
    scale(source.data_ptr<float>());
  }
  return channels_last ? result.movedim(1, -1).contiguous() : result;
}

at::Tensor Preprocess::pull_back(const at::Tensor& gradient) const {
  at::Tensor planar = channels_last ? gradient.movedim(-1, 1) : gradient;
  Affine map = affine(*this, planar.size(1), planar.dim());
  std::vector<std::int64_t> per_channel(static_cast<std::size_t>(planar.dim()), 1);
  per_channel[1] = -1;
  at::Tensor result = (planar * at::tensor(map.scale).view(per_channel)).contiguous();
  return bgr ? result.flip({1}) : result;
}

std::string Preprocess::str() const {
  std::string text = fmt::format("range {}..{}", low, high);
  if (!mean.empty()) text += fmt::format(", mean {}", fmt::join(mean, " "));
  if (!deviation.empty()) text += fmt::format(", std {}", fmt::join(deviation, " "));
  return text + (bgr ? ", bgr" : ", rgb") + (channels_last ? ", nhwc" : ", nchw");
}

std::string ModelCard::to_json() const {
  Json j;
  j["range"] = {preprocess.low, preprocess.high};
  if (!preprocess.mean.empty()) j["mean"] = preprocess.mean;
  if (!preprocess.deviation.empty()) j["std"] = preprocess.deviation;
  j["channels"] = preprocess.bgr ? "bgr" : "rgb";
  j["layout"] = preprocess.channels_last ? "nhwc" : "nchw";
  if (intake.resize != Intake::Resize::automatic) j["resize"] = intake.resize_text();
  if (intake.crop != 0) j["crop"] = intake.crop;
  if (!input.empty()) j["input"] = input;
  if (rate > 0) j["rate"] = rate;
  if (!number.empty()) j["type"] = number;
  if (!head.empty()) j["head"] = head;
  if (!task.empty()) j["task"] = task;
  if (!output.empty()) j["output"] = output;
  if (threshold) j["threshold"] = *threshold;
  if (tolerance) j["tolerance"] = *tolerance;
  if (!class_names.empty()) j["classes"] = class_names;
  if (label_shift != 0) j["label_shift"] = label_shift;
  if (!architecture.empty()) j["architecture"] = architecture;
  if (!data.empty()) j["data"] = data;
  if (accuracy) j["accuracy"] = *accuracy;
  if (!accuracy_data.empty()) j["accuracy_data"] = accuracy_data;
  if (!source.empty()) j["source"] = source;
  if (!licence.empty()) j["licence"] = licence;
  if (!first_domain.empty()) j["first_domain"] = first_domain;
  if (!second_domain.empty()) j["second_domain"] = second_domain;
  return json_text(j);
}

ModelCard ModelCard::from_json(const std::string& text, const std::string& where) {
  json j = parse_json<json>(text);
  if (!j.is_object()) bad_input("{}: the model card is not a JSON object", where);
  ModelCard card;
  read_into(card, j, where);
  return card;
}

void ModelCard::override_with_toml(const std::filesystem::path& path) {
  std::string text = read_file(path, 1 << 20);
  check_toml_nesting(text, path.string());
  toml::table table;
  try {
    table = toml::parse(text, path.string());
  } catch (const toml::parse_error& e) {
    bad_input("{}: line {}: {}", path.string(), e.source().begin.line, e.description());
  }
  static const std::vector<std::string> kKnown = {
      "range",       "mean",         "std",       "channels",  "layout",        "input",  "type",   "head",
      "task",        "output",       "threshold", "tolerance", "classes",       "resize", "crop",   "rate",
      "label_shift", "architecture", "data",      "accuracy",  "accuracy_data", "source", "licence"};
  for (const auto& [key, unused] : table) {
    if (std::find(kKnown.begin(), kKnown.end(), key.str()) == kKnown.end())
      bad_input("{}: there is no key '{}'; known are {}", path.string(), printable(key.str()), fmt::join(kKnown, ", "));
  }
  std::ostringstream as_json;
  as_json << toml::json_formatter{table};
  read_into(*this, parse_json<json>(as_json.str()), path.string());
}

void CardFlags::apply_to(ModelCard& card) const {
  Preprocess& p = card.preprocess;
  card.preprocess_known |= !(mean.empty() && deviation.empty() && range.empty() && channels.empty() && layout.empty());
  if (!mean.empty()) p.mean = parse_numbers("--mean", mean);
  if (!deviation.empty()) p.deviation = parse_numbers("--std", deviation);
  if (!range.empty()) std::tie(p.low, p.high) = parse_range(range);
  if (!channels.empty()) p.bgr = parse_choice("--channels", channels, "rgb", "bgr", ErrorCode::usage);
  if (!layout.empty()) p.channels_last = parse_choice("--layout", layout, "nchw", "nhwc", ErrorCode::usage);
  if (!resize.empty()) set_resize(card.intake, resize, "--resize", ErrorCode::usage);
  if (!crop.empty()) set_crop(card.intake, crop, "--crop", ErrorCode::usage);
  if (!rate.empty()) set_rate(card, rate, "--rate", ErrorCode::usage);
  card.intake.skip_broken |= skip_broken;
  if (!label_shift.empty()) set_label_shift(card, label_shift, "--label-shift", ErrorCode::usage);
  check_head(head, "--head", ErrorCode::usage);
  if (!head.empty()) card.head = head;
  check_task(task, "--task", ErrorCode::usage);
  if (!task.empty()) card.task = task;
  if (!output.empty()) card.output = output;
  if (!threshold.empty())
    card.threshold = checked_threshold(one_number("--threshold", threshold), "--threshold", ErrorCode::usage);
  if (!tolerance.empty())
    card.tolerance = checked_tolerance(one_number("--tolerance", tolerance), "--tolerance", ErrorCode::usage);
  if (!classes.empty()) {
    card.class_names = parse_class_names(classes);
    card.classes_given = classes;
  }
  if (!input.empty()) {
    std::size_t rate_at = std::min(input.find('@'), input.size());
    if (rate_at < input.size()) set_rate(card, input.substr(rate_at + 1), "the rate in --input", ErrorCode::usage);
    card.input.clear();
    for (double n : parse_numbers("--input", input.substr(0, rate_at)))
      card.input.push_back(static_cast<std::int64_t>(n));
    if (card.input.size() > 3 || *std::min_element(card.input.begin(), card.input.end()) < 1)
      bad_usage(
          "--input is '{}', but must be channels,height,width such as 3,224,224, channels,length of a sound, or how "
          "many values a flat input has",
          printable(input));
  }
}

void check(const Preprocess& preprocess, std::int64_t channels, const std::string& where) {
  auto fits = [&](const std::vector<double>& v) {
    return v.size() <= 1 || static_cast<std::int64_t>(v.size()) == channels;
  };
  auto require = [&](const std::vector<double>& values, const char* what) {
    if (!fits(values))
      bad_input("{}: {} for {}", where, counted(static_cast<std::int64_t>(values.size()), what),
                counted(channels, "channel"));
  };
  require(preprocess.mean, "mean");
  require(preprocess.deviation, "standard deviation");
  for (double d : preprocess.deviation) {
    if (!(d > 0)) bad_input("{}: a standard deviation of {} cannot be divided by", where, d);
  }
}

}  // namespace galvani
