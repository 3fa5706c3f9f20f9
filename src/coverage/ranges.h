// The smallest and largest value of every neuron on training data.
#pragma once

#include <vector>

#include "galvani/coverage/profile.h"

namespace galvani {

class Ranges : public ProfilePart {
 public:
  explicit Ranges(const TraceLayout& layout);

  void learn(const Traces& traces) override;
  std::string summary() const override;
  void save(ArchiveWriter& out) const override;
  void load(ArchiveReader& in) override;

  // Where nothing was learned low is above high, so that no value lies between them.
  const std::vector<float>& low() const { return low_; }
  const std::vector<float>& high() const { return high_; }

 private:
  std::vector<float> low_, high_;
};

}  // namespace galvani
