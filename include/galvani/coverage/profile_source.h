// Where what is known of the training data comes from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "galvani/coverage/profile.h"
#include "galvani/trace/trace.h"

namespace galvani {

struct ProfileSource {
  std::string file;           // that a profile was saved to
  std::string train;          // or data to learn it from
  std::string size = "1000";  // how many inputs of them are drawn: a number, or "all"

  std::string str() const;  // for records: "mnist:train, 1000 inputs"; empty if neither is named
};

// "1000", or "all" (0).
std::int64_t parse_profile_size(const std::string& text);

// A profile that was kept, with what the record says it was made from.
struct KeptProfile {
  std::filesystem::path file;
  std::string source;
};

bool needs_profile(const std::vector<Spec>& criteria, const TraceLayout& layout);

// Null if no source is named. Else the file that is named; the kept one if it is of the
// same source or no source is named; or what is learned from the training data, drawn by `seed`. A kept one that is
// damaged or of another model is learned again where the training data are named.
std::shared_ptr<const Profile> find_profile(Tracer& tracer, const std::vector<Spec>& criteria,
                                            const ProfileSource& source, std::uint64_t seed,
                                            const KeptProfile& kept = {});

}  // namespace galvani
