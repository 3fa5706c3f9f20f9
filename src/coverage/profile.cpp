#include "galvani/coverage/profile.h"

#include <algorithm>

#include "coverage/builtin.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/rng.h"

namespace galvani {
namespace {

constexpr std::uint32_t kProfileVersion = 1;
constexpr std::string_view kProfileKind = "profile";

std::unique_ptr<ProfilePart> make_part(const std::string& name, const TraceLayout& layout) {
  for (auto* make : {make_ranges, make_reference, make_paths, make_layer_moments}) {
    if (auto part = make(name, layout)) return part;
  }
  return nullptr;
}

}  // namespace

Profile::Profile(const TraceLayout& layout, const std::vector<Spec>& criteria) : layout_(layout) {
  for (const Spec& criterion : criteria) {
    for (const std::string& name : profile_parts(criterion, layout)) {
      if (parts_.count(name) == 0) parts_[name] = make_part(name, layout);
    }
  }
}

TraceNeeds Profile::needs() const {
  TraceNeeds needs;
  for (const auto& [name, part] : parts_) needs = needs | part->needs();
  return needs;
}

void Profile::learn(const Traces& traces) {
  for (const auto& [name, part] : parts_) part->learn(traces);
  for (char usable : traces.usable) (usable ? inputs_ : dropped_) += 1;
}

void Profile::finish() {
  for (const auto& [name, part] : parts_) part->finish();
}

const ProfilePart& Profile::find(const std::string& name, const std::string& criterion) const {
  auto found = parts_.find(name);
  if (found == parts_.end())
    bad_usage("{}: the profile does not have '{}'; make it again with `galvani profile --criteria` naming {}",
              criterion, name, criterion);
  return *found->second;
}

void Profile::save(const std::filesystem::path& path) const {
  ArchiveWriter out;
  out.put(layout_.signature());
  out.put(data);
  out.put(inputs_);
  out.put(dropped_);
  out.put(static_cast<std::uint64_t>(parts_.size()));
  save_parts(out);
  write_sealed(path, kProfileKind, kProfileVersion, out.bytes());
}

void Profile::save_parts(ArchiveWriter& out) const {
  for (const auto& [name, part] : parts_) {
    out.put(name);
    part->save(out);
  }
}

std::shared_ptr<const Profile> Profile::load(const std::filesystem::path& path, const TraceLayout& layout) {
  std::string payload = read_sealed(path, kProfileKind, kProfileVersion);
  ArchiveReader in(payload, path.string());
  std::shared_ptr<Profile> profile(new Profile(layout));
  std::string signature = in.get_text();
  if (signature != layout.signature()) {
    auto model_of = [](const std::string& text) { return text.substr(0, text.find(" classes ")); };
    if (model_of(signature) != model_of(layout.signature()))
      bad_input("{}: was made for another model; make it again with `galvani profile`", path.string());
    bad_input("{}: was made for other taps or neurons of this model; use the same --taps and --neurons", path.string());
  }
  profile->data = in.get_text();
  profile->inputs_ = in.get<std::int64_t>();
  profile->dropped_ = in.get<std::int64_t>();
  if (profile->inputs_ < 0 || profile->dropped_ < 0) in.broken("counts fewer than no inputs");
  auto count = in.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name = in.get_text();
    std::unique_ptr<ProfilePart> part;
    try {
      part = make_part(name, layout);
    } catch (const Error&) {
      in.broken("names a part that does not exist");
    }
    if (part == nullptr || profile->parts_.count(name) != 0) in.broken("names a part that does not exist");
    part->load(in);
    profile->parts_[name] = std::move(part);
  }
  in.expect_end();
  return profile;
}

std::string Profile::parts_hash() const {
  ArchiveWriter out;
  save_parts(out);
  return sha256(out.bytes());
}

std::string Profile::parts_hash(const std::filesystem::path& path) {
  std::string payload = read_sealed(path, kProfileKind, kProfileVersion);
  ArchiveReader in(payload, path.string());
  in.get_text();  // the layout's signature
  in.get_text();  // what it was learned from
  in.get<std::int64_t>();
  in.get<std::int64_t>();
  in.get<std::uint64_t>();
  return sha256(in.rest());
}

Dataset profile_sample(const Dataset& data, std::int64_t size, std::uint64_t seed) {
  if (size <= 0 || size >= data.size()) return data;
  std::vector<std::int64_t> rows = Rng(seed).derive("profile").sample(data.size(), size);
  std::sort(rows.begin(), rows.end());
  return data.subset(rows);
}

std::shared_ptr<const Profile> learn_profile(Tracer& tracer, const std::vector<Spec>& criteria, const Dataset& data,
                                             std::int64_t size, std::uint64_t seed) {
  auto profile = std::make_shared<Profile>(tracer.layout(), criteria);
  profile->data = data.name;
  if (profile->empty()) return profile;
  Tracer own(tracer.network(), tracer.taps(), tracer.unit(), profile->needs());
  Dataset chosen = profile_sample(data, size, seed);
  if (chosen.size() < data.size()) profile->data = fmt::format("{} of {}", size, data.name);
  own.stream(chosen, "profiling", [&](const Traces& traces, std::int64_t) { profile->learn(traces); });
  profile->finish();
  if (profile->inputs() == 0) bad_input("{}: gives no finite traces to learn from", data.name);
  return profile;
}

const Profile& required_profile(const CriterionContext& context, const std::string& criterion) {
  if (context.profile == nullptr)
    bad_usage("{} compares with training data: give --profile FILE (made by `galvani profile`) or --train DATA",
              criterion);
  return *context.profile;
}

}  // namespace galvani
