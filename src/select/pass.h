// One pass of inputs through the network that serves every selector of a run.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "galvani/select/selector.h"

namespace galvani {

class SharedPass {
 public:
  SharedPass(Network& network, const std::vector<SelectorNeeds>& all);
  // For one kind of features alone.
  SharedPass(Network& network, const FeatureNeed& need);

  // With `traces`, those too, if a selector reads them. Close calls are settled as predictions do.
  Seen run(const at::Tensor& inputs, bool traces) const;
  // What selector number `i` reads of it, features in its own order.
  Seen share(const Seen& all, std::size_t i) const;

  // Rows that one piece may have, of inputs of so many bytes that are run `runs` times.
  std::int64_t piece(std::uint64_t bytes, std::int64_t runs) const;

 private:
  std::size_t slot(const FeatureNeed& need);
  std::vector<at::Tensor> reduce(const Outputs& part) const;

  Network& network_;
  std::vector<FeatureNeed> features_;              // all that is read
  std::vector<std::vector<std::size_t>> of_each_;  // by selector: which of them
  std::vector<int> taps_, layers_;                 // of the request
  std::vector<std::size_t> trace_slots_;
  std::optional<Tracer> tracer_;
  bool relevance_ = false;
};

}  // namespace galvani
