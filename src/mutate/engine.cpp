#include "galvani/mutate/engine.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "galvani/base/crew.h"
#include "galvani/base/error.h"

namespace galvani {
namespace {

// Counts fit a byte within a block, so that sixteen pixels are counted at a time.
constexpr std::size_t kBlock = 240;
// Parents a worker takes at a time: neighbours in memory stay with one worker.
constexpr std::int64_t kChunk = 8;

inline std::uint8_t distance(std::uint8_t a, std::uint8_t b) {
  return static_cast<std::uint8_t>(a > b ? a - b : b - a);
}

// Simple loops over a block, one after the other: each of them is vectorised.
using Block = std::array<std::uint8_t, kBlock>;

std::int64_t count_non_zero(const Block& block, std::size_t n) {
  std::uint8_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count = static_cast<std::uint8_t>(count + (block[i] != 0 ? 1 : 0));
  return count;
}

const std::uint8_t* bytes_of(const at::Tensor& image) {
  return static_cast<const std::uint8_t*>(image.data_ptr());
}

void check_parent(const at::Tensor& image, const ImageShape& shape, std::size_t index, const char* what) {
  if (!(shape_of(image) == shape) || !image.is_contiguous())
    bad_usage("the {} of parent {} must be a contiguous uint8 tensor of shape {}x{}x{}", what, index, shape.channels,
              shape.height, shape.width);
}

}  // namespace

Change measure_change(const ImageShape& shape, const std::uint8_t* reference, const std::uint8_t* mutant) {
  Change change;
  Block largest{};
  Block pixels;
  for (std::size_t first = 0; first < shape.plane(); first += kBlock) {
    std::size_t n = std::min(kBlock, shape.plane() - first);
    for (int c = 0; c < shape.channels; ++c) {
      const std::uint8_t* a = reference + static_cast<std::size_t>(c) * shape.plane() + first;
      const std::uint8_t* b = mutant + static_cast<std::size_t>(c) * shape.plane() + first;
      for (std::size_t i = 0; i < n; ++i) {
        std::uint8_t change_here = distance(a[i], b[i]);
        pixels[i] = c == 0 || change_here > pixels[i] ? change_here : pixels[i];
      }
    }
    change.pixels += count_non_zero(pixels, n);
    for (std::size_t i = 0; i < n; ++i) largest[i] = pixels[i] > largest[i] ? pixels[i] : largest[i];
  }
  change.largest = *std::max_element(largest.begin(), largest.end());
  return change;
}

std::int64_t count_non_zero(const ImageShape& shape, const std::uint8_t* image) {
  std::int64_t count = 0;
  for (std::size_t first = 0; first < shape.plane(); first += kBlock) {
    std::size_t n = std::min(kBlock, shape.plane() - first);
    Block pixels{};
    for (int c = 0; c < shape.channels; ++c) {
      const std::uint8_t* plane = image + static_cast<std::size_t>(c) * shape.plane() + first;
      for (std::size_t i = 0; i < n; ++i) pixels[i] = static_cast<std::uint8_t>(pixels[i] | plane[i]);
    }
    count += count_non_zero(pixels, n);
  }
  return count;
}

bool is_valid(const Validity& validity, const Change& change, std::int64_t non_zero) {
  if (static_cast<double>(change.pixels) < validity.alpha * static_cast<double>(non_zero)) return true;
  return change.largest <= validity.beta * 255;
}

std::int64_t Mutants::valid() const {
  return std::count_if(each.begin(), each.end(), [](const Mutant& mutant) { return mutant.valid; });
}

MutationEngine::MutationEngine(const std::string& mutators, const MutationContext& context, const Options& options)
    : set_(mutators, context), shape_(context.shape), options_(options) {
  if (shape_.bytes() == 0 || (shape_.channels != 1 && shape_.channels != 3))
    bad_usage("images of shape {}x{}x{} cannot be mutated; they must be gray or RGB", shape_.channels, shape_.height,
              shape_.width);
  auto share = [](const char* name, double value) {
    if (!(value >= 0 && value <= 1)) bad_usage("the validity bound {} is {}, but must be from 0 to 1", name, value);
  };
  share("alpha", options.validity.alpha);
  share("beta", options.validity.beta);
  if (options.max_tries < 1) bad_usage("a mutation needs at least one try, not {}", options.max_tries);
}

Mutant MutationEngine::mutate_one(const Parent& parent, std::uint8_t* image, std::uint8_t* reference) const {
  const std::size_t size = shape_.bytes();
  const std::uint8_t* parent_image = bytes_of(parent.image);
  const std::uint8_t* parent_reference = bytes_of(parent.reference);
  const bool unchanged = parent_image == parent_reference || std::memcmp(parent_image, parent_reference, size) == 0;
  std::int64_t non_zero = -1;
  Rng rng = parent.rng;
  Mutant mutant;
  mutant.affine_used = parent.affine_used;
  while (mutant.tries < options_.max_tries && set_.draw(rng, !parent.affine_used, mutant.rule)) {
    ++mutant.tries;
    const Mutator& mutator = set_.mutator(mutant.rule);
    mutator.apply(mutant.rule, shape_, parent_image, image);
    // A repetition is no new test (and some of the 95 rules change nothing).
    if (std::memcmp(image, parent_image, size) == 0) continue;
    if (mutator.affine()) {
      if (unchanged) {
        std::memcpy(reference, image, size);
        mutant.valid = true;
      } else {
        mutator.apply(mutant.rule, shape_, parent_reference, reference);
        mutant.valid =
            is_valid(options_.validity, measure_change(shape_, reference, image), count_non_zero(shape_, reference));
      }
      mutant.affine_used = mutant.valid;
    } else {
      if (non_zero < 0) non_zero = count_non_zero(shape_, parent_reference);
      Change change = measure_change(shape_, parent_reference, image);
      bool exempt = options_.exempt_style && mutator.group() == MutatorGroup::style;
      mutant.valid = change.pixels > 0 && (exempt || is_valid(options_.validity, change, non_zero));
      if (mutant.valid) std::memcpy(reference, parent_reference, size);
    }
    if (mutant.valid) return mutant;
  }
  std::memcpy(image, parent_image, size);
  std::memcpy(reference, parent_reference, size);
  return mutant;
}

Parent MutationEngine::replay(const at::Tensor& seed, const std::vector<Rule>& rules) const {
  Parent now{seed.contiguous(), seed.contiguous(), false, Rng(0)};
  for (const Rule& rule : rules) {
    now.image = set_.apply(rule, now.image);
    if (!set_.mutator(rule).affine()) continue;
    now.reference = set_.apply(rule, now.reference);
    now.affine_used = true;
  }
  return now;
}

bool MutationEngine::valid(const at::Tensor& reference, const at::Tensor& image) const {
  check_parent(image, shape_, 0, "image");
  check_parent(reference, shape_, 0, "reference");
  return is_valid(options_.validity, measure_change(shape_, bytes_of(reference), bytes_of(image)),
                  count_non_zero(shape_, bytes_of(reference)));
}

Mutants MutationEngine::mutate(const std::vector<Parent>& parents) const {
  for (std::size_t i = 0; i < parents.size(); ++i) {
    check_parent(parents[i].image, shape_, i, "image");
    check_parent(parents[i].reference, shape_, i, "reference");
  }
  auto n = static_cast<std::int64_t>(parents.size());
  Mutants result;
  result.images = at::empty({n, shape_.channels, shape_.height, shape_.width}, at::kByte);
  result.references = at::empty_like(result.images);
  result.each.resize(parents.size());
  auto* images = static_cast<std::uint8_t*>(result.images.data_ptr());
  auto* references = static_cast<std::uint8_t*>(result.references.data_ptr());
  CrewWork work((n + kChunk - 1) / kChunk);
  work.run([&](std::int64_t chunk, int) {
    for (std::int64_t i = chunk * kChunk; i < std::min(n, (chunk + 1) * kChunk); ++i) {
      auto at = static_cast<std::size_t>(i);
      result.each[at] = mutate_one(parents[at], images + at * shape_.bytes(), references + at * shape_.bytes());
    }
  });
  if (work.cut()) {
    static_assert(std::is_trivially_copyable_v<Mutant>);
    work.share(images, shape_.bytes(), kChunk, n);
    work.share(references, shape_.bytes(), kChunk, n);
    work.share(result.each.data(), sizeof(Mutant), kChunk, n);
  }
  return result;
}

}  // namespace galvani
