#include "galvani/mutate/engine.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/data/snr.h"

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

Change measure_change(const at::Tensor& reference, const at::Tensor& mutant) {
  if (reference.scalar_type() == at::kByte)
    return measure_change(shape_of(reference), reference.contiguous().data_ptr<std::uint8_t>(),
                          mutant.contiguous().data_ptr<std::uint8_t>());
  at::Tensor step = (mutant.to(at::kInt) - reference.to(at::kInt)).abs().amax(0);
  return {step.ne(0).sum().item<std::int64_t>(), step.max().item<int>()};
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

namespace {

constexpr double kLeastOfPicture = 0.05;
constexpr double kLeastOfSound = 0.01;  // 20 dB less

// Squared distance from the mean, summed over the pixels of `picture` that `inside` marks (null: all), and a level more
// for every pixel, so that a picture of one colour is as good as any.
double variation(const ImageShape& shape, const std::uint8_t* picture, const std::uint8_t* inside) {
  double total = 0;
  for (int c = 0; c < shape.channels; ++c, picture += shape.plane()) {
    std::uint64_t count = 0, sum = 0, squares = 0;
    for (std::size_t i = 0; i < shape.plane(); ++i) {
      std::uint64_t in = inside == nullptr || inside[i] > 127 ? 1 : 0;
      std::uint64_t value = in * picture[i];
      count += in;
      sum += value;
      squares += value * value;
    }
    if (count == 0) continue;
    auto mean = static_cast<double>(sum) / static_cast<double>(count);
    total += static_cast<double>(squares) - mean * static_cast<double>(sum) + static_cast<double>(count);
  }
  return total;
}

double energy(const std::int16_t* samples, std::size_t n) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<std::uint64_t>(std::int64_t{samples[i]} * samples[i]);
  return static_cast<double>(sum);
}

}  // namespace

bool leaves_enough(const Mutator& mutator, const Rule& rule, const SampleType& type, const void* before,
                   const void* after) {
  if (type.kind == SampleKind::audio) {
    return energy(static_cast<const std::int16_t*>(after), type.values()) >=
           kLeastOfSound * energy(static_cast<const std::int16_t*>(before), type.values());
  }
  ImageShape shape{static_cast<int>(type.shape[0]), static_cast<int>(type.shape[1]), static_cast<int>(type.shape[2])};
  // What comes in from outside is black, so a white sheet shows where the picture is now.
  SampleType sheet = SampleType::image(1, shape.height, shape.width);
  std::vector<std::uint8_t> white(shape.plane(), 255), inside(shape.plane());
  mutator.apply(rule, sheet, white.data(), inside.data());
  return variation(shape, static_cast<const std::uint8_t*>(after), inside.data()) >=
         kLeastOfPicture * variation(shape, static_cast<const std::uint8_t*>(before), nullptr);
}

bool is_valid(const Validity& validity, const Change& change, std::int64_t non_zero) {
  if (static_cast<double>(change.pixels) < validity.alpha * static_cast<double>(non_zero)) return true;
  return change.largest <= validity.beta * 255;
}

std::int64_t Mutants::valid() const {
  return std::count_if(each.begin(), each.end(), [](const Mutant& mutant) { return mutant.valid; });
}

MutationEngine::MutationEngine(const std::string& mutators, const MutationContext& context, const Options& options)
    : set_(mutators, context), type_(context.type), options_(options) {
  bool image = type_.kind == SampleKind::image;
  std::size_t axes = image ? 3 : 2;
  if (type_.shape.size() != axes || type_.values() == 0 || (image && type_.shape[0] != 1 && type_.shape[0] != 3))
    bad_usage("{} of shape {} cannot be mutated; {}", type_.noun(), type_.shape_text(),
              image ? "they must be gray or RGB" : "they have no samples");
  if (image) image_ = shape_of(at::empty(type_.shape, at::kByte));
  auto share = [](const char* name, double value) {
    if (!(value >= 0 && value <= 1)) bad_usage("the validity bound {} is {}, but must be from 0 to 1", name, value);
  };
  share("alpha", options.validity.alpha);
  share("beta", options.validity.beta);
  if (options.max_tries < 1) bad_usage("a mutation needs at least one try, not {}", options.max_tries);
}

void MutationEngine::check(const at::Tensor& input, std::size_t index, const char* what) const {
  if (input.sizes() != at::IntArrayRef(type_.shape) || input.scalar_type() != type_.dtype() || !input.is_contiguous())
    bad_usage("the {} of parent {} must be a contiguous {} tensor of shape {}", what, index,
              type_.kind == SampleKind::image ? "uint8" : "int16", type_.shape_text());
}

bool MutationEngine::near(const void* reference, const void* mutant, std::int64_t& non_zero) const {
  if (type_.kind == SampleKind::audio)
    return signal_to_noise(static_cast<const std::int16_t*>(reference), static_cast<const std::int16_t*>(mutant),
                           type_.values()) >= options_.validity.snr;
  const auto* before = static_cast<const std::uint8_t*>(reference);
  if (non_zero < 0) non_zero = galvani::count_non_zero(image_, before);
  return is_valid(options_.validity, measure_change(image_, before, static_cast<const std::uint8_t*>(mutant)),
                  non_zero);
}

Mutant MutationEngine::mutate_one(const Parent& parent, std::uint8_t* image, std::uint8_t* reference) const {
  const std::size_t size = type_.bytes();
  const void* parent_image = parent.image.data_ptr();
  const void* parent_reference = parent.reference.data_ptr();
  const bool unchanged = parent_image == parent_reference || std::memcmp(parent_image, parent_reference, size) == 0;
  std::int64_t non_zero = -1;  // of the parent's reference
  Rng rng = parent.rng;
  Mutant mutant;
  mutant.affine_used = parent.affine_used;
  while (mutant.tries < options_.max_tries && set_.draw(rng, !parent.affine_used, mutant.rule)) {
    ++mutant.tries;
    const Mutator& mutator = set_.mutator(mutant.rule);
    mutator.apply(mutant.rule, type_, parent_image, image);
    // A repetition is no new test (and some of the 95 rules change nothing).
    if (std::memcmp(image, parent_image, size) == 0) continue;
    if (mutator.affine()) {
      if (unchanged) {
        std::memcpy(reference, image, size);
        mutant.valid = true;
      } else {
        mutator.apply(mutant.rule, type_, parent_reference, reference);
        std::int64_t own = -1;
        mutant.valid = near(reference, image, own);
      }
      mutant.valid = mutant.valid && leaves_enough(mutator, mutant.rule, type_, parent_reference, reference);
      mutant.affine_used = mutant.valid;
    } else {
      bool exempt = options_.exempt_style && mutator.group() == MutatorGroup::style;
      bool changed = std::memcmp(image, parent_reference, size) != 0;
      mutant.valid = changed && (exempt || near(parent_reference, image, non_zero));
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
  check(image, 0, "image");
  check(reference, 0, "reference");
  std::int64_t non_zero = -1;
  return near(reference.data_ptr(), image.data_ptr(), non_zero);
}

Mutants MutationEngine::mutate(const std::vector<Parent>& parents) const {
  for (std::size_t i = 0; i < parents.size(); ++i) {
    check(parents[i].image, i, "image");
    check(parents[i].reference, i, "reference");
  }
  auto n = static_cast<std::int64_t>(parents.size());
  Mutants result;
  result.images = at::empty(type_.batch(n), type_.dtype());
  result.references = at::empty_like(result.images);
  result.each.resize(parents.size());
  auto* images = static_cast<std::uint8_t*>(result.images.data_ptr());
  auto* references = static_cast<std::uint8_t*>(result.references.data_ptr());
  CrewWork work((n + kChunk - 1) / kChunk);
  work.run([&](std::int64_t chunk, int) {
    for (std::int64_t i = chunk * kChunk; i < std::min(n, (chunk + 1) * kChunk); ++i) {
      auto at = static_cast<std::size_t>(i);
      result.each[at] = mutate_one(parents[at], images + at * type_.bytes(), references + at * type_.bytes());
    }
  });
  if (work.cut()) {
    static_assert(std::is_trivially_copyable_v<Mutant>);
    work.share(images, type_.bytes(), kChunk, n);
    work.share(references, type_.bytes(), kChunk, n);
    work.share(result.each.data(), sizeof(Mutant), kChunk, n);
  }
  return result;
}

}  // namespace galvani
