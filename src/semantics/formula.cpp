// Words as a formula: concepts joined by and, or, but not, found by beam search. Where a neuron has a map, the formula
// whose place in the images overlaps most with it (compositional explanations, Mu and Andreas 2020); else the one that
// tells best which images activate it (INVERT, Bykov et al. 2023).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "semantics/describers.h"
#include "semantics/dissect.h"
#include "semantics/places.h"
#include "semantics/ranking.h"

namespace galvani {
namespace {

using Bits = std::vector<std::uint64_t>;

// One concept as bits: a position of an image each, or an image each.
struct Atom {
  std::string words;
  Bits bits;
  std::int64_t area = 0;
};

enum class Join { first, both, either, without };

struct Formula {
  std::string words;
  Bits bits;
  std::int64_t area = 0;
  double score = -1;
  std::size_t length = 0;
  Join last = Join::first;
};

std::int64_t ones(const Bits& bits) {
  std::int64_t count = 0;
  for (std::uint64_t word : bits) count += __builtin_popcountll(word);
  return count;
}

// Parentheses only where they are needed to read it.
std::string joined(const Formula& formula, Join join, const std::string& atom) {
  const char* word = join == Join::both ? "and" : join == Join::either ? "or" : "but not";
  bool mixed = formula.length > 1 && (formula.last != join || join == Join::without);
  return mixed ? fmt::format("({}) {} {}", formula.words, word, atom)
               : fmt::format("{} {} {}", formula.words, word, atom);
}

Bits combined(const Bits& a, const Bits& b, Join join) {
  Bits result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    result[i] = join == Join::both ? a[i] & b[i] : join == Join::either ? a[i] | b[i] : a[i] & ~b[i];
  return result;
}

struct SearchLimits {
  std::size_t length = 3;
  std::size_t width = 5;
  double gain = 0.02;  // what a longer formula must add, relative
};

// How good bits are; called from one thread.
using Judge = std::function<double(const Bits& bits, std::int64_t area)>;

// The best formulas of each length are made longer; `tried` counts what was looked at.
Formula search(const std::vector<Atom>& atoms, const Judge& judge, const SearchLimits& limits, std::size_t& tried) {
  std::vector<Formula> beam;
  auto better = [](const Formula& a, const Formula& b) { return a.score > b.score; };
  for (const Atom& atom : atoms) {
    if (atom.area == 0) continue;
    beam.push_back({atom.words, atom.bits, atom.area, judge(atom.bits, atom.area), 1, Join::first});
    ++tried;
  }
  if (beam.empty()) return {};
  std::stable_sort(beam.begin(), beam.end(), better);
  beam.resize(std::min(beam.size(), limits.width));
  Formula best = beam[0];
  for (std::size_t length = 2; length <= limits.length; ++length) {
    std::vector<Formula> longer;
    std::set<std::pair<std::int64_t, double>> seen;  // the same bits by another way
    for (const Formula& from : beam) {
      for (const Atom& atom : atoms) {
        if (atom.area == 0) continue;
        for (Join join : {Join::both, Join::either, Join::without}) {
          Bits bits = combined(from.bits, atom.bits, join);
          std::int64_t area = ones(bits);
          ++tried;
          if (area == 0 || area == from.area) continue;
          double score = judge(bits, area);
          bool enters = longer.size() < limits.width || score > longer.back().score;
          if (!enters || !seen.emplace(area, score).second) continue;
          longer.push_back({joined(from, join, atom.words), std::move(bits), area, score, length, join});
          std::stable_sort(longer.begin(), longer.end(), better);
          if (longer.size() > limits.width) longer.pop_back();
        }
      }
    }
    if (longer.empty()) break;
    if (longer[0].score > best.score * (1 + limits.gain)) best = longer[0];
    beam = std::move(longer);
  }
  return best;
}

// Positions of all images, one image after the other, `words` words each.
std::vector<Atom> place_atoms(const NeuronProbe& probe, const ConceptMaps& maps) {
  std::vector<Atom> atoms;
  auto images = static_cast<std::size_t>(maps.images());
  auto positions = static_cast<std::size_t>(maps.grid().positions());
  std::size_t words = maps.words();
  for (std::size_t which = 0; which < maps.concepts(); ++which) {
    Atom atom{probe.concepts()[which].words, Bits(images * words), maps.area(which)};
    for (std::size_t i = 0; i < images; ++i) {
      const std::uint64_t* from = maps.bits(static_cast<std::int64_t>(i), which);
      std::copy(from, from + words, atom.bits.begin() + static_cast<std::ptrdiff_t>(i * words));
    }
    atoms.push_back(std::move(atom));
  }
  for (const Place& place : places()) {
    Bits one(words);
    for (std::size_t p = 0; p < positions; ++p) {
      if (place.holds(maps.grid(), p)) ConceptMaps::set(one.data(), p);
    }
    Atom atom{std::string("what is ") + place.words, {}, 0};
    for (std::size_t i = 0; i < images; ++i) atom.bits.insert(atom.bits.end(), one.begin(), one.end());
    atoms.push_back(std::move(atom));
  }
  for (std::size_t label = 0; label < probe.class_names().size(); ++label) {
    Atom atom{probe.class_names()[label] + " pictures", Bits(images * words), 0};
    for (std::size_t i = 0; i < images; ++i) {
      if (probe.labels()[i] != static_cast<std::int64_t>(label)) continue;
      for (std::size_t p = 0; p < positions; ++p) ConceptMaps::set(atom.bits.data() + i * words, p);
    }
    atoms.push_back(std::move(atom));
  }
  for (Atom& atom : atoms) atom.area = ones(atom.bits);
  return atoms;
}

// A bit an image: its class, and whether it is among the tenth that has most of a concept.
std::vector<Atom> image_atoms(const NeuronProbe& probe) {
  constexpr double kPlenty = 0.1;
  auto images = static_cast<std::size_t>(probe.images());
  std::size_t words = (images + 63) / 64;
  std::vector<Atom> atoms;
  for (std::size_t label = 0; label < probe.class_names().size(); ++label) {
    Atom atom{probe.class_names()[label] + " pictures", Bits(words), 0};
    for (std::size_t i = 0; i < images; ++i) {
      if (probe.labels()[i] == static_cast<std::int64_t>(label)) ConceptMaps::set(atom.bits.data(), i);
    }
    atoms.push_back(std::move(atom));
  }
  for (std::size_t which = 0; which < probe.concepts().size(); ++which) {
    std::vector<float> shares;
    for (std::size_t i = 0; i < images; ++i)
      shares.push_back(static_cast<float>(probe.maps().share(static_cast<std::int64_t>(i), which)));
    std::vector<std::int64_t> order = ascending(shares);
    Atom atom{"much of " + probe.concepts()[which].words, Bits(words), 0};
    auto count = static_cast<std::size_t>(kPlenty * static_cast<double>(images));
    for (std::size_t i = images - count; i < images; ++i) {
      if (shares[static_cast<std::size_t>(order[i])] > 0)
        ConceptMaps::set(atom.bits.data(), static_cast<std::size_t>(order[i]));
    }
    atoms.push_back(std::move(atom));
  }
  for (Atom& atom : atoms) atom.area = ones(atom.bits);
  return atoms;
}

NeuronWords said(const Formula& found, const char* figure, double p, bool sure) {
  Evidence evidence{found.words, "formula", figure, found.score, p};
  return joined_words(sure ? std::vector<Evidence>{evidence} : std::vector<Evidence>(), evidence);
}

class FormulaDescriber : public Describer {
 public:
  explicit FormulaDescriber(const Options& options) : images_(options.integer("images")) {
    limits_.length = static_cast<std::size_t>(options.integer("length"));
    limits_.width = static_cast<std::size_t>(options.integer("width"));
    named_.iou = options.real("iou");
    named_.p = options.real("p");
    auroc_ = options.real("auroc");
  }

 private:
  NeuronWords by_overlap(const ConceptMaps& maps, const std::vector<Atom>& atoms, const NeuronActivity& neuron) const {
    auto images = static_cast<std::size_t>(maps.images());
    std::size_t words = maps.words();
    Bits active(images * words);
    for (std::size_t i = 0; i < images; ++i) {
      for (std::uint32_t at = neuron.first[i]; at < neuron.first[i + 1]; ++at)
        ConceptMaps::set(active.data() + i * words, neuron.positions[at]);
    }
    auto judge = [&](const Bits& bits, std::int64_t area) {
      std::int64_t both = 0;
      for (std::size_t w = 0; w < bits.size(); ++w) both += __builtin_popcountll(bits[w] & active[w]);
      return static_cast<double>(both) / static_cast<double>(area + neuron.area() - both);
    };
    std::size_t tried = 0;
    Formula found = search(atoms, judge, limits_, tried);
    if (found.bits.empty()) return joined_words({}, {});
    std::vector<float> mean(static_cast<std::size_t>(maps.grid().positions()), 0);
    for (std::size_t i = 0; i < images; ++i) {
      for (std::size_t p = 0; p < mean.size(); ++p)
        mean[p] += ConceptMaps::has(found.bits.data() + i * words, p) ? 1.0F : 0.0F;
    }
    for (float& m : mean) m /= static_cast<float>(images);
    OverlapTest test = overlap_test(
        maps.images(), neuron,
        [&](std::int64_t image, std::size_t position) {
          return ConceptMaps::has(found.bits.data() + static_cast<std::size_t>(image) * words, position);
        },
        mean.data(), found.area);
    double p = times(test.p, tried);
    return said(found, "IoU", p, found.score >= named_.iou && p < named_.p);
  }

  NeuronWords by_images(const NeuronProbe& probe, const std::vector<Atom>& atoms, const NeuronActivity& neuron) const {
    std::vector<std::int64_t> order = ascending(neuron.peaks);
    auto images = static_cast<std::size_t>(probe.images());
    auto separated = [&](const Bits& bits) {
      std::vector<char> inside(images);
      for (std::size_t i = 0; i < images; ++i) inside[i] = ConceptMaps::has(bits.data(), i) ? 1 : 0;
      return separation(neuron.peaks, order, inside);
    };
    // Of so few, or of more than half of all, nothing can be said.
    auto judge = [&](const Bits& bits, std::int64_t area) {
      return area < 2 || static_cast<std::size_t>(area) * 2 > images ? 0 : separated(bits).auroc;
    };
    std::size_t tried = 0;
    Formula found = search(atoms, judge, limits_, tried);
    if (found.bits.empty()) return joined_words({}, {});
    double p = times(separated(found.bits).p, tried);
    return said(found, "AUROC", p, found.score >= auroc_ && p < named_.p);
  }

  std::vector<std::vector<NeuronWords>> run(const DescribeTask& task) override {
    NeuronProbe probe(task.network, task.data, images_, task.seed);
    std::vector<int> taps = taps_of(task.network, task.exemplars);
    std::vector<std::vector<NeuronWords>> result;
    std::int64_t all = 0;
    for (const ExemplarLayer& layer : task.exemplars.layers) all += layer.neurons;
    Progress progress("formulas", all, "neurons");
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const ExemplarLayer& layer = task.exemplars.layers[i];
      std::vector<NeuronActivity> activity = probe.activity(taps[i], layer);
      bool mapped = !activity[0].first.empty();
      const ConceptMaps& maps = mapped ? probe.maps(layer) : probe.maps();
      std::vector<Atom> atoms = mapped ? place_atoms(probe, maps) : image_atoms(probe);
      std::vector<NeuronWords> words(activity.size());
      workers().run(layer.neurons, [&](std::int64_t index, int) {
        auto n = static_cast<std::size_t>(index);
        words[n] = layer.dead(index) ? never_active()
                   : mapped          ? by_overlap(maps, atoms, activity[n])
                                     : by_images(probe, atoms, activity[n]);
      });
      result.push_back(std::move(words));
      progress.advance(layer.neurons);
    }
    return result;
  }

  std::int64_t images_;
  SearchLimits limits_;
  DissectLimits named_;
  double auroc_ = 0.7;
};

}  // namespace

DescriberEntry formula_entry() {
  return {
      "formula",
      "concepts joined by and, or, but not: the formula that overlaps most, or tells images apart best",
      {{"length", std::int64_t{3}, "concepts in a formula at most", 1, 8, {}},
       {"width", std::int64_t{5}, "of the beam search", 1, 1000, {}},
       {"images", std::int64_t{1000}, "of the data that concepts are compared on", 10, 1e6, {}},
       {"iou", 0.04, "least overlap of a formula that is sure", 0, 1, {}},
       {"auroc", 0.7, "the same for layers without a map: how well it tells images apart", 0.5, 1, {}},
       {"p", 0.01, "largest p of one that is sure, times the formulas that were tried", 0, 1, {}}},
      [](const Options& options) -> std::unique_ptr<Describer> { return std::make_unique<FormulaDescriber>(options); }};
}

}  // namespace galvani
