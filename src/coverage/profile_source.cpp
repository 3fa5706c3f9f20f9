#include "galvani/coverage/profile_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "galvani/base/error.h"
#include "galvani/model/inputs.h"

namespace galvani {

std::string ProfileSource::str() const {
  if (!file.empty()) return file;
  return train.empty() ? "" : fmt::format("{}, {} inputs", train, size);
}

std::int64_t parse_profile_size(const std::string& text) {
  if (text == "all") return 0;
  std::int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1)
    bad_usage("--profile-size is '{}', but must be a number above 0, or all", printable(text));
  return n;
}

bool needs_profile(const std::vector<Spec>& criteria, const TraceLayout& layout) {
  return std::any_of(criteria.begin(), criteria.end(),
                     [&](const Spec& criterion) { return !profile_parts(criterion, layout).empty(); });
}

std::shared_ptr<const Profile> find_profile(Tracer& tracer, const std::vector<Spec>& criteria,
                                            const ProfileSource& source, std::uint64_t seed, const KeptProfile& kept) {
  if (!source.file.empty() && !source.train.empty()) bad_usage("--profile and --train exclude each other");
  if (!source.file.empty()) return Profile::load(source.file, tracer.layout());
  if (!kept.file.empty() && std::filesystem::exists(kept.file) &&
      (source.train.empty() || kept.source == source.str())) {
    try {
      return Profile::load(kept.file, tracer.layout());
    } catch (const Error&) {
      // What is learned anew may not be the same: that is for the one who kept it to tell.
      if (source.train.empty()) throw;
    }
  }
  if (source.train.empty()) return nullptr;
  return learn_profile(tracer, criteria, open_data_for(tracer.network(), source.train, "train"),
                       parse_profile_size(source.size), seed);
}

}  // namespace galvani
