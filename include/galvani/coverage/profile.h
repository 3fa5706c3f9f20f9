// What criteria know of the training data: made once, kept in a file that belongs to one model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/base/archive.h"
#include "galvani/base/options.h"
#include "galvani/trace/trace.h"

namespace galvani {

// One thing learned from training data, such as the range of every neuron.
class ProfilePart {
 public:
  virtual ~ProfilePart() = default;
  virtual TraceNeeds needs() const { return {}; }
  virtual void learn(const Traces& traces) = 0;  // batches in order; unusable rows are left out
  virtual void finish() {}                       // after the last batch
  virtual std::string summary() const = 0;       // for people: "ranges of 698 neurons"
  virtual void save(ArchiveWriter& out) const = 0;
  virtual void load(ArchiveReader& in) = 0;
};

// The parts a criterion needs, by name; "reference:tap=fc2" has options of its own.
std::vector<std::string> profile_parts(const Spec& criterion, const TraceLayout& layout);

class Profile {
 public:
  // With the parts that these criteria need.
  Profile(const TraceLayout& layout, const std::vector<Spec>& criteria);
  static std::shared_ptr<const Profile> load(const std::filesystem::path& path, const TraceLayout& layout);

  TraceNeeds needs() const;
  void learn(const Traces& traces);
  void finish();
  void save(const std::filesystem::path& path) const;
  // SHA-256 of what was learned; the same of a file, whatever model it is for. Error(bad_input) if that is damaged.
  std::string parts_hash() const;
  static std::string parts_hash(const std::filesystem::path& path);

  // Usage error naming `criterion` and the remedy if the profile does not have the part.
  template <class Part>
  const Part& part(const std::string& name, const std::string& criterion) const {
    return dynamic_cast<const Part&>(find(name, criterion));
  }
  bool empty() const { return parts_.empty(); }
  const std::map<std::string, std::unique_ptr<ProfilePart>>& parts() const { return parts_; }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t dropped() const { return dropped_; }
  std::string data;  // what it was learned from, for people

 private:
  explicit Profile(TraceLayout layout) : layout_(std::move(layout)) {}
  void save_parts(ArchiveWriter& out) const;
  const ProfilePart& find(const std::string& name, const std::string& criterion) const;

  TraceLayout layout_;
  std::map<std::string, std::unique_ptr<ProfilePart>> parts_;
  std::int64_t inputs_ = 0;
  std::int64_t dropped_ = 0;
};

// `data` or a sample of it, drawn by `seed` without repeats; size 0: all.
Dataset profile_sample(const Dataset& data, std::int64_t size, std::uint64_t seed);
// Learned from such a sample.
std::shared_ptr<const Profile> learn_profile(Tracer& tracer, const std::vector<Spec>& criteria, const Dataset& data,
                                             std::int64_t size, std::uint64_t seed);

}  // namespace galvani
