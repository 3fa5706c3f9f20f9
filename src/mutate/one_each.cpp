#include "galvani/mutate/one_each.h"

#include <ATen/ATen.h>

#include <limits>

#include "galvani/base/error.h"

namespace galvani {
namespace {

MutationEngine::Options without_bounds() {
  MutationEngine::Options options;
  options.validity = {1, 1, -std::numeric_limits<double>::infinity()};
  options.exempt_style = true;
  return options;
}

MutationContext context_for(const SampleType& type, const at::Tensor& style_images) {
  return {type, style_images};
}

}  // namespace

OneEach::OneEach(const std::string& mutators, const SampleType& type, const at::Tensor& style_images)
    : engine_(mutators, context_for(type, style_images), without_bounds()) {}

Mutants OneEach::make(const at::Tensor& images, const std::vector<std::int64_t>& rows, const Rng& stream) const {
  std::vector<Parent> parents(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    at::Tensor image = images[static_cast<std::int64_t>(i)];
    parents[i] = {image, image, false, stream.derive(static_cast<std::uint64_t>(rows[i]))};
  }
  return engine_.mutate(parents);
}

DataView changed_once(const DataView& data, const OneEach& maker, std::uint64_t seed, std::vector<std::string>& rules) {
  rules.assign(static_cast<std::size_t>(data.size()), "");
  Rng stream = Rng(seed).derive("one mutant each");
  return {static_cast<const Labelled&>(data), data.type(),
          [data, &maker, stream, &rules](const std::vector<std::int64_t>& rows) {
            Mutants mutants = maker.make(data.fetch(rows), rows, stream);
            for (std::size_t i = 0; i < rows.size(); ++i) {
              const Mutant& mutant = mutants.each[i];
              rules[static_cast<std::size_t>(rows[i])] = mutant.valid ? maker.set().text(mutant.rule) : "";
            }
            return mutants.images;
          }};
}

}  // namespace galvani
