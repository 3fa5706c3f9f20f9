// Training traces of one tap, by the class the network predicts for them: what surprise is measured against.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "galvani/coverage/profile.h"

namespace galvani {

class Reference : public ProfilePart {
 public:
  Reference(const TraceLayout& layout, const std::string& tap);

  void learn(const Traces& traces) override;
  void finish() override;
  std::string summary() const override;
  void save(ArchiveWriter& out) const override;
  void load(ArchiveReader& in) override;

  const TraceBlock& block() const { return block_; }
  // [n, width] float, sorted by class; rows of class c are [begin(c), begin(c + 1)).
  const at::Tensor& traces() const { return traces_; }
  std::int64_t begin(std::int64_t label) const { return begins_[static_cast<std::size_t>(label)]; }
  std::int64_t count(std::int64_t label) const { return begin(label + 1) - begin(label); }
  std::int64_t classes() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  at::Tensor of_class(std::int64_t label) const;

  // The tap a surprise criterion reads: the one named, or the last before the output.
  static std::string tap_of(const Options& options, const TraceLayout& layout);
  static std::string part_name(const std::string& tap) { return "reference/" + tap; }

 private:
  TraceBlock block_;
  std::vector<std::vector<float>> learned_;  // by class
  std::vector<std::int64_t> begins_;
  at::Tensor traces_;
};

}  // namespace galvani
