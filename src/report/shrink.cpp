#include "galvani/report/shrink.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/data/dataset.h"
#include "galvani/fuzz/references.h"
#include "galvani/generate/generator.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr std::size_t kAllSubsets = 6;      // lineages up to this length are searched completely
constexpr std::size_t kMostBlocks = 1024;   // of pixels; more would take too many verdicts on large images
constexpr std::size_t kMostTogether = 256;  // images judged in one call
constexpr int kStrengths = 16;              // of a change as a whole

// Bits of x and y in turn: places that are near each other in the picture are near in this order, too.
std::uint64_t interleaved(std::uint32_t x, std::uint32_t y) {
  std::uint64_t result = 0;
  for (unsigned bit = 0; bit < 32; ++bit)
    result |= (std::uint64_t{x} >> bit & 1U) << (2 * bit) | (std::uint64_t{y} >> bit & 1U) << (2 * bit + 1);
  return result;
}

// Changed pixels, or moments of a sound (places in a plane), near ones next to each other.
std::vector<std::int64_t> changed_pixels(const at::Tensor& reference, const at::Tensor& image) {
  at::Tensor changed = reference.ne(image).any(0);
  std::vector<std::int64_t> places;
  const bool* flags = changed.data_ptr<bool>();
  for (std::int64_t i = 0; i < changed.numel(); ++i) {
    if (flags[i]) places.push_back(i);
  }
  if (changed.dim() < 2) return places;
  std::int64_t width = changed.size(1);
  std::sort(places.begin(), places.end(), [width](std::int64_t a, std::int64_t b) {
    auto order = [width](std::int64_t i) {
      return interleaved(static_cast<std::uint32_t>(i % width), static_cast<std::uint32_t>(i / width));
    };
    return order(a) < order(b);
  });
  return places;
}

class PixelShrinker {
 public:
  PixelShrinker(const at::Tensor& reference, const at::Tensor& image, const FailCheck& fails)
      : reference_(reference.contiguous()), image_(image.clone()), fails_(fails) {}

  at::Tensor run() {
    std::vector<std::int64_t> places = changed_pixels(reference_, image_);
    for (std::size_t blocks = 2; !places.empty(); blocks *= 2) {
      blocks = std::min({blocks, places.size(), kMostBlocks});
      bool finest = blocks == places.size() || blocks == kMostBlocks;
      std::size_t before = places.size();
      places = pass(places, blocks);
      // The finest blocks are gone through until nothing more can be left out.
      if (finest && places.size() == before) break;
      if (finest) blocks /= 2;
    }
    weaken();
    return image_;
  }

 private:
  using Places = std::vector<std::int64_t>;

  at::Tensor reverted(const at::Tensor& image, const Places& places) const {
    at::Tensor result = image.clone();
    std::int64_t plane = image[0].numel();
    auto revert = [&](auto* to, const auto* from) {
      for (std::int64_t c = 0; c < image.size(0); ++c) {
        for (std::int64_t place : places) to[c * plane + place] = from[c * plane + place];
      }
    };
    if (image.scalar_type() == at::kByte) {
      revert(result.data_ptr<std::uint8_t>(), reference_.data_ptr<std::uint8_t>());
    } else {
      revert(result.data_ptr<std::int16_t>(), reference_.data_ptr<std::int16_t>());
    }
    return result;
  }

  // Sets back what it can of so many blocks; returns the places that are left.
  Places pass(const Places& places, std::size_t blocks) {
    std::vector<Places> parts(blocks);
    for (std::size_t b = 0; b < blocks; ++b)
      parts[b].assign(places.begin() + static_cast<std::ptrdiff_t>(b * places.size() / blocks),
                      places.begin() + static_cast<std::ptrdiff_t>((b + 1) * places.size() / blocks));
    std::vector<at::Tensor> images;
    images.reserve(blocks);
    for (const Places& part : parts) images.push_back(reverted(image_, part));
    std::vector<bool> alone = judged(images);
    // What can be left out by itself may not be left out together: halves of it are tried then.
    std::vector<std::size_t> free;
    for (std::size_t b = 0; b < blocks; ++b) {
      if (alone[b]) free.push_back(b);
    }
    std::vector<char> gone(blocks, 0);
    revert_together(parts, free, gone);
    Places left;
    for (std::size_t b = 0; b < blocks; ++b) {
      if (gone[b] == 0) left.insert(left.end(), parts[b].begin(), parts[b].end());
    }
    return left;
  }

  void revert_together(const std::vector<Places>& parts, const std::vector<std::size_t>& free,
                       std::vector<char>& gone) {
    if (free.empty()) return;
    Places all;
    for (std::size_t b : free) all.insert(all.end(), parts[b].begin(), parts[b].end());
    at::Tensor candidate = reverted(image_, all);
    if (judged({candidate})[0]) {
      image_ = candidate;
      for (std::size_t b : free) gone[b] = 1;
      return;
    }
    if (free.size() == 1) return;
    auto middle = free.begin() + static_cast<std::ptrdiff_t>(free.size() / 2);
    revert_together(parts, {free.begin(), middle}, gone);
    revert_together(parts, {middle, free.end()}, gone);
  }

  // The whole change at a part of its strength: the least that still fails.
  void weaken() {
    at::Tensor difference = image_.to(at::kFloat) - reference_.to(at::kFloat);
    if (!difference.any().item<bool>()) return;
    const SampleType type = SampleType::of(image_.sizes().vec(), 0);
    std::vector<at::Tensor> images;
    for (int k = 1; k < kStrengths; ++k) {
      at::Tensor weaker = reference_.to(at::kFloat) + difference * (static_cast<double>(k) / kStrengths);
      images.push_back(weaker.round().clamp(type.low(), type.high()).to(type.dtype()));
    }
    std::vector<bool> still = judged(images);
    auto first = std::find(still.begin(), still.end(), true);
    if (first != still.end()) image_ = images[static_cast<std::size_t>(first - still.begin())];
  }

  std::vector<bool> judged(const std::vector<at::Tensor>& images) const {
    std::vector<bool> result;
    for (std::size_t first = 0; first < images.size(); first += kMostTogether) {
      auto from = images.begin() + static_cast<std::ptrdiff_t>(first);
      auto to = images.begin() + static_cast<std::ptrdiff_t>(std::min(images.size(), first + kMostTogether));
      std::vector<bool> part = fails_({from, to});
      result.insert(result.end(), part.begin(), part.end());
    }
    return result;
  }

  at::Tensor reference_;
  at::Tensor image_;
  const FailCheck& fails_;
};

// Every choice of `size` of n things, as lists of their places.
std::vector<std::vector<std::size_t>> choices(std::size_t n, std::size_t size) {
  std::vector<std::vector<std::size_t>> result;
  for (std::size_t bits = 0; bits < std::size_t{1} << n; ++bits) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < n; ++i) {
      if ((bits >> i & 1U) != 0) places.push_back(i);
    }
    if (places.size() == size) result.push_back(places);
  }
  return result;
}

}  // namespace

at::Tensor shrink_pixels(const at::Tensor& reference, const at::Tensor& image, const FailCheck& fails) {
  return PixelShrinker(reference, image, fails).run();
}

struct FaultShrinker::Impl {
  Impl(const CampaignReader& from, Network& under_test, const ShrinkOptions& given)
      : reader(from), network(under_test), options(given), references(from, under_test) {
    GeneratorContext context;
    std::vector<at::Tensor> seeds;
    for (const SeedRecord& seed : reader.seeds()) seeds.push_back(reader.image(seed.id));
    if (seeds.empty()) bad_input("{}: has no seeds", reader.folder().string());
    context.seeds = at::stack(seeds);
    context.rate = reader.type().rate;
    const CampaignRecord& record = reader.record();
    if (!record.style.empty()) context.style_images = load_data(record.style).images;
    context.network = &network;
    generator = make_generator(Spec::parse(record.settings.generator), context);
  }

  // A lineage followed, and what the result is held against.
  struct Made {
    at::Tensor image;
    at::Tensor reference;
  };
  Made make(const at::Tensor& seed, const std::vector<std::string>& steps) const {
    Followed end = follow(*generator, seed, steps);
    return {end.input, generator->reference(seed, end.memo)};
  }
  bool valid(const Made& made) const { return generator->valid(made.reference, made.image); }

  // Canonical logits of what was made of a seed: [N, classes].
  at::Tensor judge(const std::vector<at::Tensor>& images, std::int64_t seed) {
    check_interrupt();
    Request alone;
    alone.alone = true;
    alone.references = references.of(std::vector<std::int64_t>(images.size(), seed));
    verdicts += static_cast<std::int64_t>(images.size());
    return network.run(at::stack(images), alone).logits;
  }

  std::vector<bool> fail(const std::vector<at::Tensor>& images, const FaultRecord& fault) {
    std::vector<bool> result;
    if (images.empty()) return result;
    at::Tensor labels = galvani::verdicts(judge(images, fault.seed));
    for (std::int64_t i = 0; i < labels.size(0); ++i) {
      std::int64_t label = labels.data_ptr<std::int64_t>()[i];
      // Scores that are not a number are a fault of another kind than a wrong class.
      bool same_kind = (label == kNotANumber) == (fault.predicted == kNotANumber);
      result.push_back(options.keep_class ? label == fault.predicted : same_kind && label != fault.label);
    }
    return result;
  }

  // The first of some parts of a lineage that gives a valid fault.
  bool first_failing(const at::Tensor& seed, const std::vector<std::string>& rules,
                     const std::vector<std::vector<std::size_t>>& parts, const FaultRecord& fault,
                     std::vector<std::size_t>& chosen, Made& made) {
    std::vector<at::Tensor> images;
    std::vector<Made> all;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<std::string> steps;
      for (std::size_t place : parts[i]) steps.push_back(rules[place]);
      Made part = make(seed, steps);
      if (!valid(part)) continue;
      images.push_back(part.image);
      all.push_back(part);
      which.push_back(i);
    }
    std::vector<bool> still = fail(images, fault);
    auto first = std::find(still.begin(), still.end(), true);
    if (first == still.end()) return false;
    auto i = static_cast<std::size_t>(first - still.begin());
    chosen = parts[which[i]];
    made = all[i];
    return true;
  }

  // Long lineages lose single steps first; of short ones every part is tried, the shortest first.
  std::vector<std::size_t> shorten(const at::Tensor& seed, const std::vector<std::string>& rules,
                                   const FaultRecord& fault, Made& made) {
    std::vector<std::size_t> now(rules.size());
    for (std::size_t i = 0; i < now.size(); ++i) now[i] = i;
    bool found = true;
    while (found && now.size() > kAllSubsets) {
      std::vector<std::vector<std::size_t>> parts;
      for (std::size_t i = 0; i < now.size(); ++i) {
        parts.push_back(now);
        parts.back().erase(parts.back().begin() + static_cast<std::ptrdiff_t>(i));
      }
      found = first_failing(seed, rules, parts, fault, now, made);
    }
    if (now.size() > kAllSubsets) return now;
    for (std::size_t size = 1; size < now.size(); ++size) {
      std::vector<std::vector<std::size_t>> parts = choices(now.size(), size);
      for (auto& part : parts) {
        for (std::size_t& place : part) place = now[place];
      }
      if (first_failing(seed, rules, parts, fault, now, made)) break;
    }
    return now;
  }

  // The first step that has a strength, at a part of it: the least that still fails.
  void weaken(const at::Tensor& seed, std::vector<std::string>& rules, const FaultRecord& fault, Made& made) {
    std::vector<std::string> weaker;
    auto step = std::find_if(rules.begin(), rules.end(), [&](const std::string& rule) {
      weaker = generator->weaker(rule);
      return !weaker.empty();
    });
    if (step == rules.end()) return;
    const std::string whole = *step;
    std::vector<std::string> tried;
    std::vector<Made> all;
    std::vector<at::Tensor> images;
    for (const std::string& rule : weaker) {
      *step = rule;
      Made part = make(seed, rules);
      if (!valid(part)) continue;
      tried.push_back(rule);
      all.push_back(part);
      images.push_back(part.image);
    }
    std::vector<bool> still = fail(images, fault);
    auto first = std::find(still.begin(), still.end(), true);
    auto i = static_cast<std::size_t>(first - still.begin());
    *step = first == still.end() ? whole : tried[i];
    if (first != still.end()) made = all[i];
  }

  const CampaignReader& reader;
  Network& network;
  ShrinkOptions options;
  SeedReferences references;
  std::unique_ptr<Generator> generator;
  std::int64_t verdicts = 0;
};

FaultShrinker::FaultShrinker(const CampaignReader& reader, Network& network, const ShrinkOptions& options)
    : impl_(std::make_unique<Impl>(reader, network, options)) {}
FaultShrinker::~FaultShrinker() = default;

ShrunkFault FaultShrinker::shrink(const FaultRecord& fault) {
  Impl& impl = *impl_;
  impl.verdicts = 0;
  ShrunkFault result;
  result.fault = fault;
  result.seed = impl.reader.image(fault.seed);
  result.original = impl.reader.image(fault);
  result.rules_before = impl.reader.lineage(fault).rules;
  if (result.original.sizes() != result.seed.sizes())
    bad_input("{}: is not of the size of the campaign's inputs", fault.file);
  if (!impl.fail({result.original}, fault)[0]) bad_input("{}: does not fail any more", fault.file);
  result.rules = result.rules_before;
  FaultShrinker::Impl::Made made{result.original, result.seed};
  if (!fault.unrepeatable) {
    made = impl.make(result.seed, result.rules);
    result.repeatable = at::equal(made.image, result.original);
  } else {
    result.repeatable = false;
  }
  result.before = measure_change(made.reference, result.original);
  if (result.repeatable) {
    std::vector<std::string> left;
    for (std::size_t place : impl.shorten(result.seed, result.rules, fault, made)) left.push_back(result.rules[place]);
    impl.weaken(result.seed, left, fault, made);
    result.rules = left;
  } else {
    made.image = result.original;
  }
  FailCheck fails = [&](const std::vector<at::Tensor>& images) { return impl.fail(images, fault); };
  result.image = shrink_pixels(made.reference, made.image, fails);
  result.after = measure_change(made.reference, result.image);
  at::Tensor scores = impl.judge({result.image}, fault.seed);
  at::Tensor verdict = verdicts(scores);
  result.predicted = verdict.item<std::int64_t>();
  result.confidence =
      static_cast<double>(confidences(probabilities(impl.network.info(), scores), verdict).item<float>());
  result.verdicts = impl.verdicts;
  return result;
}

}  // namespace galvani
