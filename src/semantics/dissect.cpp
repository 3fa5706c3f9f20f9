// Words without any training: where a neuron is active is compared with a bank of concepts computed from the images
// themselves, with places, and with classes (after network dissection, Bau et al. 2017). The best of each is joined to
// a phrase, if it is more than chance: "red areas at the top left in truck pictures".
#include "semantics/dissect.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "semantics/describers.h"
#include "semantics/places.h"
#include "semantics/ranking.h"

namespace galvani {
namespace {

constexpr std::int64_t kFewestActive = 5;  // images that a test needs

// What a neuron's activity says of one concept.
struct Match {
  std::size_t which = 0;
  double iou = 0;
  double p = 1;
};

}  // namespace

// Images are the units of the test: what the neuron and the concept share in an image, less what they would share if
// the concept came from any image (d), adds up to zero by chance.
OverlapTest overlap_test(std::int64_t images, const NeuronActivity& neuron,
                         const std::function<bool(std::int64_t image, std::size_t position)>& present,
                         const float* mean, std::int64_t concept_area) {
  OverlapTest result;
  double sum = 0;
  double squares = 0;
  std::int64_t both = 0;
  for (std::int64_t image = 0; image < images; ++image) {
    std::uint32_t first = neuron.first[static_cast<std::size_t>(image)];
    std::uint32_t last = neuron.first[static_cast<std::size_t>(image) + 1];
    if (first == last) continue;
    std::int64_t here = 0;
    double expected = 0;
    for (std::uint32_t i = first; i < last; ++i) {
      std::size_t p = neuron.positions[i];
      here += present(image, p) ? 1 : 0;
      expected += static_cast<double>(mean[p]);
    }
    double d = static_cast<double>(here) - expected;
    both += here;
    sum += d;
    squares += d * d;
    ++result.active;
  }
  std::int64_t either = neuron.area() + concept_area - both;
  result.iou = either > 0 ? static_cast<double>(both) / static_cast<double>(either) : 0;
  if (result.active >= kFewestActive && squares > 0) result.p = upper_tail(sum / std::sqrt(squares));
  return result;
}

double times(double p, std::size_t tries) {
  return std::min(1.0, p * static_cast<double>(std::max<std::size_t>(1, tries)));
}

namespace {

std::vector<Match> appearance(const ConceptMaps& maps, const NeuronActivity& neuron) {
  std::vector<Match> matches;
  for (std::size_t which = 0; which < maps.concepts(); ++which) {
    OverlapTest test = overlap_test(
        maps.images(), neuron,
        [&](std::int64_t image, std::size_t position) { return ConceptMaps::has(maps.bits(image, which), position); },
        maps.mean(which), maps.area(which));
    matches.push_back({which, test.iou, times(test.p, maps.concepts())});
  }
  return matches;
}

// Where a neuron is active, every image counting the same: adds up to 1.
std::vector<double> heat_of(const ConceptMaps& maps, const NeuronActivity& neuron) {
  std::vector<double> heat(static_cast<std::size_t>(maps.grid().positions()), 0);
  double images = 0;
  for (std::int64_t image = 0; image < maps.images(); ++image) {
    std::uint32_t first = neuron.first[static_cast<std::size_t>(image)];
    std::uint32_t last = neuron.first[static_cast<std::size_t>(image) + 1];
    if (first == last) continue;
    images += 1;
    for (std::uint32_t i = first; i < last; ++i) heat[neuron.positions[i]] += 1.0 / static_cast<double>(last - first);
  }
  for (double& h : heat) h /= std::max(1.0, images);
  return heat;
}

// The place whose evenly filled area is most like where the neuron is active; it must be more there than the others of
// its layer are.
std::optional<Evidence> place_of(const ConceptMaps& maps, const NeuronActivity& neuron, const std::vector<double>& heat,
                                 const std::vector<double>& others, const DissectLimits& limits) {
  const Grid& grid = maps.grid();
  auto positions = static_cast<std::size_t>(grid.positions());
  auto overlap = [&](const std::vector<char>& inside, double area) {
    double least = 0;
    double most = 0;
    for (std::size_t p = 0; p < positions; ++p) {
      double filled = inside[p] != 0 ? 1 / area : 0;
      least += std::min(heat[p], filled);
      most += std::max(heat[p], filled);
    }
    return least / most;
  };
  const Place* best = nullptr;
  std::vector<char> best_inside;
  double best_overlap = overlap(std::vector<char>(positions, 1), static_cast<double>(positions));
  for (const Place& place : places()) {
    std::vector<char> inside(positions);
    for (std::size_t p = 0; p < positions; ++p) inside[p] = place.holds(grid, p) ? 1 : 0;
    auto area = static_cast<double>(std::count(inside.begin(), inside.end(), 1));
    double now = area > 0 ? overlap(inside, area) : 0;
    if (now <= best_overlap) continue;
    best = &place;
    best_overlap = now;
    best_inside = std::move(inside);
  }
  if (best == nullptr || best_overlap < limits.place) return std::nullopt;
  double usual = 0;
  double area = 0;
  for (std::size_t p = 0; p < positions; ++p) {
    if (best_inside[p] == 0) continue;
    usual += others[p];
    area += 1.0 / static_cast<double>(positions);
  }
  usual = std::max(usual, area);
  // The share of what is active that lies inside, image by image.
  double n = 0;
  double sum = 0;
  double squares = 0;
  for (std::int64_t image = 0; image < maps.images(); ++image) {
    std::uint32_t first = neuron.first[static_cast<std::size_t>(image)];
    std::uint32_t last = neuron.first[static_cast<std::size_t>(image) + 1];
    if (first == last) continue;
    double in = 0;
    for (std::uint32_t i = first; i < last; ++i) in += best_inside[neuron.positions[i]] != 0 ? 1 : 0;
    double share = in / static_cast<double>(last - first);
    n += 1;
    sum += share;
    squares += share * share;
  }
  if (n < kFewestActive || sum / n < limits.distinct * usual) return std::nullopt;
  double deviation = std::sqrt(std::max(1e-12, squares / n - sum * sum / n / n) * n / (n - 1));
  double p = times(upper_tail((sum / n - usual) / (deviation / std::sqrt(n))), places().size());
  if (p >= limits.p) return std::nullopt;
  return Evidence{best->words, "place", "IoU", best_overlap, p};
}

// The class, or a few of them, whose images activate the neuron most.
std::optional<Evidence> classes_of(const NeuronProbe& probe, const NeuronActivity& neuron,
                                   const DissectLimits& limits) {
  std::vector<std::int64_t> order = ascending(neuron.peaks);
  auto images = static_cast<std::size_t>(probe.images());
  struct Group {
    std::int64_t label;
    double auroc, p;
  };
  std::vector<Group> groups;
  std::vector<char> inside(images);
  auto mark = [&](std::int64_t label) {
    for (std::size_t i = 0; i < images; ++i) {
      if (probe.labels()[i] == label) inside[i] = 1;
    }
  };
  for (std::int64_t label = 0; label < static_cast<std::int64_t>(probe.class_names().size()); ++label) {
    std::fill(inside.begin(), inside.end(), 0);
    mark(label);
    if (std::count(inside.begin(), inside.end(), 1) < 2) continue;
    Separation found = separation(neuron.peaks, order, inside);
    groups.push_back({label, found.auroc, found.p});
  }
  if (groups.size() < 2) return std::nullopt;
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.auroc > b.auroc; });
  // How far the overlap is beyond chance, 1 being perfect: comparable between groups of different size.
  auto beyond_chance = [&] {
    double share = static_cast<double>(std::count(inside.begin(), inside.end(), 1)) / static_cast<double>(images);
    double chance = chance_overlap(share);
    return (matched_overlap(order, inside) - chance) / (1 - chance);
  };
  std::fill(inside.begin(), inside.end(), 0);
  std::string words;
  double best = 0;
  std::size_t joined = 0;
  std::vector<char> chosen;
  constexpr std::size_t kMostJoined = 3;
  for (; joined < std::min(kMostJoined, groups.size()); ++joined) {
    mark(groups[joined].label);
    double now = beyond_chance();
    // One class that says enough stays alone.
    if (joined > 0 && (best >= limits.alone || now < best + limits.joining)) break;
    best = now;
    chosen = inside;
    words += (joined > 0 ? " or " : "") + probe.class_names()[static_cast<std::size_t>(groups[joined].label)];
  }
  if (best < limits.classes) return std::nullopt;
  double p = times(separation(neuron.peaks, order, chosen).p, probe.class_names().size());
  if (p >= limits.p) return std::nullopt;
  return Evidence{words + " pictures", "class", "IoU", matched_overlap(order, chosen), p};
}

// Of a layer without a map: images with much of something.
std::optional<Evidence> plenty_of(const NeuronProbe& probe, const NeuronActivity& neuron, const DissectLimits& limits) {
  constexpr double kPlenty = 0.1;  // of all images
  auto images = static_cast<std::size_t>(probe.images());
  auto count = static_cast<std::size_t>(kPlenty * static_cast<double>(images));
  if (count < 2) return std::nullopt;
  std::vector<std::int64_t> order = ascending(neuron.peaks);
  Evidence best;
  for (std::size_t which = 0; which < probe.concepts().size(); ++which) {
    std::vector<float> shares;
    for (std::size_t i = 0; i < images; ++i)
      shares.push_back(static_cast<float>(probe.maps().share(static_cast<std::int64_t>(i), which)));
    std::vector<std::int64_t> by_share = ascending(shares);
    std::vector<char> inside(images);
    for (std::size_t i = images - count; i < images; ++i) inside[static_cast<std::size_t>(by_share[i])] = 1;
    double overlap = matched_overlap(order, inside);
    if (overlap <= best.score) continue;
    double p = times(separation(neuron.peaks, order, inside).p, probe.concepts().size());
    best = {"much of " + probe.concepts()[which].words, "appearance", "IoU", overlap, p};
  }
  double chance = chance_overlap(kPlenty);
  if ((best.score - chance) / (1 - chance) < limits.plenty || best.p >= limits.p) return std::nullopt;
  return best;
}

// The most specific of what is more than chance: first by overlap.
std::optional<Evidence> appearance_of(const std::vector<Concept>& concepts, std::vector<Match> matches,
                                      const DissectLimits& limits, Evidence& guess) {
  auto larger = [](const Match& a, const Match& b) { return a.iou > b.iou; };
  std::stable_sort(matches.begin(), matches.end(), larger);
  const Match& front = matches.front();
  guess = {concepts[front.which].words, "appearance", "IoU", front.iou, front.p};
  auto chance = [&](const Match& match) { return match.p >= limits.p; };
  matches.erase(std::remove_if(matches.begin(), matches.end(), chance), matches.end());
  if (matches.empty() || matches.front().iou < limits.iou) return std::nullopt;
  const Match& best = matches.front();
  const Concept& first = concepts[best.which];
  Evidence found{first.words, "appearance", "IoU", best.iou, best.p};
  // A colour joins what is not one.
  for (const Match& other : matches) {
    const Concept& second = concepts[other.which];
    bool joins = other.iou >= limits.second * best.iou &&
                 (first.family == ConceptFamily::colour) != (second.family == ConceptFamily::colour);
    if (!joins) continue;
    const Concept& colour = first.family == ConceptFamily::colour ? first : second;
    const Concept& shape = first.family == ConceptFamily::colour ? second : first;
    found.words = colour.adjective + " " + shape.words;
    break;
  }
  return found;
}

}  // namespace

std::vector<NeuronWords> dissect_layer(NeuronProbe& probe, const ExemplarLayer& layer,
                                       const std::vector<NeuronActivity>& activity, const DissectLimits& limits) {
  auto neurons = static_cast<std::size_t>(layer.neurons);
  bool mapped = !activity.empty() && !activity[0].first.empty();
  const ConceptMaps& maps = mapped ? probe.maps(layer) : probe.maps();
  auto positions = static_cast<std::size_t>(maps.grid().positions());
  std::vector<std::vector<double>> heat(neurons);
  std::vector<double> all(positions, 0);
  double active = 0;
  for (std::size_t n = 0; mapped && n < neurons; ++n) {
    heat[n] = heat_of(maps, activity[n]);
    if (activity[n].area() == 0) continue;
    active += 1;
    for (std::size_t p = 0; p < positions; ++p) all[p] += heat[n][p];
  }
  std::vector<NeuronWords> result(neurons);
  workers().run(layer.neurons, [&](std::int64_t index, int) {
    auto n = static_cast<std::size_t>(index);
    if (layer.dead(index)) {
      result[n] = never_active();
      return;
    }
    std::vector<Evidence> parts;
    Evidence guess;
    if (mapped && activity[n].area() > 0) {
      if (auto seen = appearance_of(probe.concepts(), appearance(maps, activity[n]), limits, guess))
        parts.push_back(*seen);
      std::vector<double> others = all;
      for (std::size_t p = 0; p < positions; ++p) others[p] = (others[p] - heat[n][p]) / std::max(1.0, active - 1);
      if (auto place = place_of(maps, activity[n], heat[n], others, limits)) parts.push_back(*place);
    }
    if (auto classes = classes_of(probe, activity[n], limits)) {
      parts.push_back(*classes);
    } else if (!mapped && probe.pictures()) {
      if (auto plenty = plenty_of(probe, activity[n], limits)) parts.push_back(*plenty);
    }
    result[n] = joined_words(parts, guess);
  });
  return result;
}

NeuronWords joined_words(std::vector<Evidence> parts, const Evidence& guess) {
  NeuronWords result;
  result.sure = !parts.empty();
  if (parts.empty() && !guess.words.empty()) parts.push_back(guess);
  for (const Evidence& part : parts) {
    bool first = result.words.empty();
    if (part.about == "place" && first) {
      result.words = "something " + part.words;
    } else if (part.about == "class" && !first) {
      result.words += " in " + part.words;
    } else {
      result.words += (first ? "" : " ") + part.words;
    }
  }
  if (parts.empty()) {
    result.words = "nothing in particular";
  } else {
    result.score = parts[0].score;
    result.figure = parts[0].figure;
    result.p = parts[0].p;
  }
  result.parts = std::move(parts);
  return result;
}

namespace {

class Dissect : public Describer {
 public:
  explicit Dissect(const Options& options) : images_(options.integer("images")) {
    limits_.iou = options.real("iou");
    limits_.p = options.real("p");
  }

 private:
  std::vector<std::vector<NeuronWords>> run(const DescribeTask& task) override {
    NeuronProbe probe(task.network, task.data, images_, task.seed);
    std::vector<int> taps = taps_of(task.network, task.exemplars);
    std::vector<std::vector<NeuronWords>> result;
    Progress progress("dissecting", static_cast<std::int64_t>(taps.size()), "layers");
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const ExemplarLayer& layer = task.exemplars.layers[i];
      result.push_back(dissect_layer(probe, layer, probe.activity(taps[i], layer), limits_));
      progress.advance();
    }
    return result;
  }

  std::int64_t images_;
  DissectLimits limits_;
};

}  // namespace

DescriberEntry dissect_entry() {
  return {"dissect",
          "concepts computed from the images: colours, edges, strokes, blobs, texture, place, classes",
          {{"images", std::int64_t{1000}, "of the data that concepts are compared on", 10, 1e6, {}},
           {"iou", 0.04, "least overlap with a concept that is named", 0, 1, {}},
           {"p", 0.01, "largest p of what is named, after correction", 0, 1, {}}},
          [](const Options& options) -> std::unique_ptr<Describer> { return std::make_unique<Dissect>(options); }};
}

}  // namespace galvani
