// The inputs of a pool that others of it are compared with: all of a small pool, a sample of a large one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "galvani/base/options.h"
#include "galvani/coverage/nearest.h"

namespace galvani {

class Crowd {
 public:
  // `who` asks: for error messages.
  Crowd(std::string who, std::int64_t pool, std::int64_t among, std::int64_t classes);

  bool sampled() const { return pool_ > among_; }
  double share() const;  // of the pool that is to be seen as a sample; 0: all of it is remembered as it comes
  std::size_t size() const { return rows_.size(); }

  // features [n, width] float, rows of length 1; shares [n, classes]; usable [n]: others are left out; rows of the
  // pool. Usage error if the memory is too small.
  void remember(const at::Tensor& features, const std::vector<double>& shares, const std::vector<char>& usable,
                const std::vector<std::int64_t>& rows);
  void gather();  // nothing more is to come

  // The k most similar, the nearest first, without the input itself.
  std::vector<std::vector<Nearest>> others_of(const at::Tensor& features, const std::vector<std::int64_t>& rows,
                                              std::int64_t k) const;
  // weight times the mean of the others' shares and the rest of one's own; one's own if there are no others. out
  // [classes].
  void smooth(const double* own, const std::vector<Nearest>& others, double weight, double* out) const;

 private:
  std::string who_;
  std::int64_t pool_, among_, classes_;
  std::vector<std::int64_t> rows_;
  std::vector<double> shares_;
  std::vector<at::Tensor> parts_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<NearestSearch> search_;
};

OptionInfo among_option();

}  // namespace galvani
