#include "galvani/mutate/mutator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"

namespace galvani {
namespace {

constexpr std::int64_t kSeeds = std::int64_t{1} << 32;
constexpr std::size_t kMaxText = 4096;

const std::string& setting_of(const Spec& spec, const std::string& name) {
  static const std::string none;
  for (const auto& [key, value] : spec.settings) {
    if (key == name) return value;
  }
  return none;
}

void check_sound(const at::Tensor& input, std::int64_t rate, const std::string& mutator) {
  if (rate < 1) bad_usage("{} must know how many samples a second a sound has", mutator);
  if (!input.defined() || input.dim() != 2 || input.scalar_type() != at::kShort || input.numel() == 0)
    bad_usage("{} changes sounds, int16 tensors of shape [channels, length]", mutator);
}

}  // namespace

const char* to_string(MutatorGroup group) {
  switch (group) {
    case MutatorGroup::differentiable:
      return "d";
    case MutatorGroup::non_differentiable:
      return "n";
    case MutatorGroup::style:
      return "style";
  }
  return "";
}

ImageShape shape_of(const at::Tensor& image) {
  if (!image.defined() || image.dim() != 3 || image.scalar_type() != at::kByte)
    bad_usage("an image to mutate must be a uint8 tensor of shape [C, H, W]");
  constexpr std::int64_t kMaxSide = 1 << 15;
  if ((image.size(0) != 1 && image.size(0) != 3) || image.size(1) < 1 || image.size(2) < 1 ||
      std::max(image.size(1), image.size(2)) > kMaxSide)
    bad_usage("an image of shape {}x{}x{} cannot be mutated; it must be gray or RGB, with sides from 1 to {}",
              image.size(0), image.size(1), image.size(2), kMaxSide);
  return {static_cast<int>(image.size(0)), static_cast<int>(image.size(1)), static_cast<int>(image.size(2))};
}

bool is_setting(const OptionInfo& info) {
  return std::holds_alternative<std::string>(info.fallback) && info.choices.empty();
}

double rule_value(const OptionInfo& info, const OptionValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real == 0 ? 0 : *real;  // -0 is 0
  const auto& word = std::get<std::string>(value);
  return static_cast<double>(std::find(info.choices.begin(), info.choices.end(), word) - info.choices.begin());
}

std::string rule_value_text(const OptionInfo& info, double value) {
  if (std::holds_alternative<double>(info.fallback)) return to_string(OptionValue(value));
  auto whole = static_cast<std::int64_t>(value);
  return info.choices.empty() ? std::to_string(whole) : info.choices.at(static_cast<std::size_t>(whole));
}

std::int64_t Mutator::free_values(std::size_t parameter) const {
  const std::string& name = parameters_.at(parameter).name;
  if (name == "seed") return kSeeds;
  return name == "image" ? style_count() : 0;
}

std::string Mutator::text(const Rule& rule) const {
  Spec spec = settings_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const OptionInfo& info = parameters_[i];
    bool usual = rule.values[i] == rule_value(info, info.fallback);
    if (i < traits_.shown || !usual || info.name == "seed" || info.name == "image")
      spec.settings.emplace_back(info.name, rule_value_text(info, rule.values[i]));
  }
  return spec.str();
}

Rule Mutator::parse(const Spec& spec) const {
  std::size_t length = spec.name.size();
  for (const auto& [key, value] : spec.settings) length += key.size() + value.size();
  if (length > kMaxText) bad_usage("{}: a rule of {} characters is no rule", name_, length);
  Options options(name_, mutators().at(name_).schema, spec);
  for (const OptionInfo& info : mutators().at(name_).schema) {
    if (is_setting(info) && options.text(info.name) != setting_of(settings_, info.name))
      bad_usage("{}: the rule is for {}={}, but {}={} is in use", name_, info.name, printable(options.text(info.name)),
                info.name, printable(setting_of(settings_, info.name)));
  }
  Rule rule;
  rule.mutator = index_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const OptionInfo& info = parameters_[i];
    bool drawn = info.name == "seed" || info.name == "image";
    if (drawn && setting_of(spec, info.name).empty())
      bad_usage("{}: a rule must say its {}, and '{}' does not", name_, info.name, printable(spec.str()));
    rule.values[i] = rule_value(info, options.values().at(info.name));
  }
  check(rule);
  return rule;
}

void Mutator::check(const Rule& rule) const {
  std::string objection_found = objection(rule.values.data());
  if (!objection_found.empty()) bad_usage("{}: {}", name_, objection_found);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == "image" && rule.values[i] >= static_cast<double>(style_count()))
      bad_usage("{}: there is no style image {}; the style source has {}", name_, rule.values[i], style_count());
  }
}

at::Tensor Mutator::apply(const Rule& rule, const at::Tensor& input) const {
  if (rule.mutator != index_) fail(ErrorCode::internal, "a rule of another mutator was given to {}", name_);
  if (kind() == SampleKind::image) {
    shape_of(input);
  } else {
    check_sound(input, rate_, name_);
  }
  at::Tensor in = input.contiguous();
  at::Tensor out = at::empty_like(in);
  change(rule.values.data(), SampleType::of(in.sizes().vec(), rate_), in.data_ptr(), out.data_ptr());
  return out;
}

void ImageMutator::change(const double* values, const SampleType& type, const void* in, void* out) const {
  ImageShape shape{static_cast<int>(type.shape[0]), static_cast<int>(type.shape[1]), static_cast<int>(type.shape[2])};
  run(values, shape, static_cast<const std::uint8_t*>(in), static_cast<std::uint8_t*>(out));
}

void SoundMutator::change(const double* values, const SampleType& type, const void* in, void* out) const {
  SoundShape shape{static_cast<std::size_t>(type.shape[0]), static_cast<std::size_t>(type.shape[1]),
                   static_cast<double>(type.rate)};
  run(values, shape, static_cast<const std::int16_t*>(in), static_cast<std::int16_t*>(out));
}

std::unique_ptr<Mutator> make_mutator(const Spec& spec, const MutationContext& context) {
  const auto& entry = mutators().at(spec.name);
  Spec settings{entry.name, {}};
  OptionSchema setting_schema, parameters;
  for (const OptionInfo& info : entry.schema) {
    (is_setting(info) ? setting_schema : parameters).push_back(info);
    const std::string& given = setting_of(spec, info.name);
    if (is_setting(info) && !given.empty()) settings.settings.emplace_back(info.name, given);
  }
  if (parameters.size() > Rule::kMaxParameters)
    fail(ErrorCode::internal, "{} has more parameters than a rule can hold", entry.name);
  std::unique_ptr<Mutator> made = entry.make(Options(entry.name, setting_schema, settings), context);
  made->name_ = entry.name;
  made->rate_ = context.type.rate;
  made->index_ = static_cast<int>(&entry - mutators().entries().data());
  made->parameters_ = std::move(parameters);
  made->settings_ = std::move(settings);
  return made;
}

}  // namespace galvani
