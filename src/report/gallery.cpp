#include "report/gallery.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/options.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/data/image.h"
#include "galvani/data/picture.h"
#include "galvani/generate/generator.h"
#include "galvani/report/faults.h"

namespace galvani {
namespace {

constexpr std::size_t kGalleryChunk = 512;
constexpr int kDistinct = 1;  // flags of a fault, known to page.js
constexpr int kKept = 2;
constexpr int kFirst = 4;    // of its seed
constexpr int kTypical = 8;  // of its cluster
constexpr std::size_t kMostClustered = 4000;
constexpr double kClusterRadius = 0.7;  // of the median distance, as `faults --cluster` has it

std::vector<FaultRecord> choose(const CampaignReader& reader, std::int64_t most, Gallery& gallery) {
  std::int64_t all = reader.counters().faults;
  reader.for_each_fault({}, [&](const FaultRecord& fault) { gallery.distinct += fault.distinct ? 1 : 0; });
  std::int64_t repetitions = std::min(most, all) - std::min(most, gallery.distinct);
  // One of every seed, as far as there is room, then others evenly.
  std::unordered_set<std::int64_t> seeds, met;
  reader.for_each_fault({}, [&](const FaultRecord& fault) {
    if (fault.distinct && static_cast<std::int64_t>(seeds.size()) < most) seeds.insert(fault.seed);
  });
  auto firsts = static_cast<std::int64_t>(seeds.size());
  std::int64_t others = gallery.distinct - firsts;
  std::int64_t wanted = std::min(most, gallery.distinct) - firsts;
  std::vector<FaultRecord> chosen;
  std::int64_t rank = 0;
  reader.for_each_fault({}, [&](const FaultRecord& fault) {
    if (fault.distinct) {
      bool first = seeds.count(fault.seed) != 0 && met.insert(fault.seed).second;
      if (!first) {
        // The rank-th of n is taken where rank·wanted/n steps up: `wanted` of them.
        bool taken = rank * wanted / others != (rank + 1) * wanted / others;
        ++rank;
        if (!taken) return;
      }
      ++gallery.shown_distinct;
    } else if (repetitions-- <= 0) {
      return;
    }
    chosen.push_back(fault);
  });
  return chosen;
}

// A tree of steps, so that what lineages share is written once.
class Steps {
 public:
  std::int64_t add(const std::vector<std::string>& rules) {
    std::int64_t node = -1;
    for (const std::string& rule : rules) {
      auto [place, is_new] = rules_.try_emplace(rule, static_cast<std::int64_t>(rules_.size()));
      if (is_new) texts_.push_back(rule);
      auto [found, first] = nodes_.try_emplace({node, place->second}, static_cast<std::int64_t>(nodes_.size()));
      if (first) {
        tree_.push_back(node);
        tree_.push_back(place->second);
      }
      node = found->second;
    }
    return node;
  }
  const std::vector<std::string>& texts() const { return texts_; }
  const std::vector<std::int64_t>& tree() const { return tree_; }

 private:
  std::unordered_map<std::string, std::int64_t> rules_;
  std::vector<std::string> texts_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> nodes_;
  std::vector<std::int64_t> tree_;
};

// Undefined where the file is gone or is not what it was.
std::vector<at::Tensor> read_images(const CampaignReader& reader, const std::vector<const FaultRecord*>& faults,
                                    std::vector<std::string>& bad) {
  const SampleType type = reader.type();
  std::vector<at::Tensor> images(faults.size());
  std::vector<std::string> problems(faults.size());
  QuietDecoders quiet;
  workers().run(static_cast<std::int64_t>(faults.size()), [&](std::int64_t index, int) {
    auto i = static_cast<std::size_t>(index);
    try {
      images[i] = picture_of(reader.image(*faults[i]), type);
    } catch (const Error& e) {
      problems[i] = e.what();
    }
  });
  for (std::string& problem : problems) {
    if (!problem.empty()) bad.push_back(std::move(problem));
  }
  return images;
}

// Faults that look alike to the network.
struct Grouped {
  std::vector<std::int64_t> cluster;  // by fault; -1: in none
  std::vector<bool> typical;
  Json clusters = Json::array();  // [size, the typical fault's place], largest first
};

Grouped group_alike(const CampaignReader& reader, Network* network, const std::vector<FaultRecord>& chosen) {
  Grouped result;
  result.cluster.assign(chosen.size(), -1);
  result.typical.assign(chosen.size(), false);
  if (network == nullptr) return result;
  std::vector<FaultRecord> faults;
  std::vector<std::size_t> places;
  std::vector<std::pair<std::int64_t, std::int64_t>> kinds;
  for (std::size_t i = 0; i < chosen.size() && faults.size() < kMostClustered; ++i) {
    if (!chosen[i].distinct) continue;
    try {
      reader.image(chosen[i]);
    } catch (const Error&) {
      continue;  // its file is gone; that is said elsewhere
    }
    faults.push_back(chosen[i]);
    places.push_back(i);
    kinds.emplace_back(chosen[i].label, chosen[i].predicted);
  }
  if (faults.empty() || network->select_taps("default").empty()) return result;
  std::string tap;
  at::Tensor features = fault_features(reader, *network, faults, tap);
  std::int64_t number = 0;
  for (const FaultCluster& cluster : cluster_features(features, kinds, kClusterRadius * median_distance(features))) {
    for (std::size_t member : cluster.members) result.cluster[places[member]] = number;
    result.typical[places[cluster.representative]] = true;
    result.clusters.push_back({cluster.members.size(), places[cluster.representative]});
    ++number;
  }
  return result;
}

// What can be heard on the page itself: seeds, and the first fault of each, as far as there is room. Other faults are
// played from their files, which the page finds if it lies in the campaign's folder.
class Sounds {
 public:
  explicit Sounds(SampleType type) : type_(std::move(type)) {}

  void add_seed(const at::Tensor& seed) { seeds_.push_back(room() ? Json(encoded(seed)) : Json()); }
  void add_fault(const CampaignReader& reader, const FaultRecord& fault, std::size_t place) {
    if (!room()) return;
    try {
      faults_[std::to_string(place)] = encoded(reader.image(fault));
    } catch (const Error&) {
      // That its file is gone is said elsewhere.
    }
  }
  Json json() const {
    return {{"seeds", seeds_},
            {"faults", faults_},
            {"seconds", static_cast<double>(type_.shape[1]) / static_cast<double>(type_.rate)}};
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{24} << 20;

  bool room() const { return bytes_ + type_.bytes() * 4 / 3 <= kMostBytes; }
  std::string encoded(const at::Tensor& sound) {
    std::string text = base64(type_.encode(sound));
    bytes_ += text.size();
    return text;
  }

  SampleType type_;
  std::size_t bytes_ = 0;
  Json seeds_ = Json::array();
  Json faults_ = Json::object();
};

double rounded(double confidence) {
  return std::round(confidence * 1e4) / 1e4;
}

}  // namespace

Gallery make_gallery(const CampaignReader& reader, const PageOptions& options, Json& data) {
  Gallery gallery;
  std::vector<FaultRecord> chosen = choose(reader, options.most, gallery);
  Grouped grouped = group_alike(reader, options.network, chosen);
  gallery.shown = static_cast<std::int64_t>(chosen.size());

  std::unordered_map<std::string, std::size_t> mutator_index;
  for (const YieldRecord& mutator : reader.kinds()) mutator_index.emplace(mutator.name, mutator_index.size());
  Json faults = {{"id", Json::array()},   {"true", Json::array()},    {"pred", Json::array()},
                 {"sure", Json::array()}, {"flags", Json::array()},   {"seed", Json::array()},
                 {"node", Json::array()}, {"mutator", Json::array()}, {"thumb", Json::array()},
                 {"file", Json::array()}, {"cluster", Json::array()}};
  std::unordered_map<std::int64_t, SeedRecord> seeds;
  for (const SeedRecord& seed : reader.seeds()) seeds.emplace(seed.id, seed);
  std::unordered_map<std::int64_t, std::int64_t> seed_place;
  Json shown_seeds = Json::array();
  Json remarks = Json::object();
  std::unordered_set<std::int64_t> seen_seeds;
  Tile& tile = gallery.tile;
  std::optional<SheetMaker> seed_sheets;
  const SampleType type = reader.type();
  std::optional<Sounds> sounds;
  if (type.kind == SampleKind::audio) sounds.emplace(type);
  Steps steps;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const FaultRecord& fault = chosen[i];
    auto [place, is_new] = seed_place.try_emplace(fault.seed, static_cast<std::int64_t>(seed_place.size()));
    if (is_new) {
      at::Tensor seed_input = reader.image(fault.seed);
      at::Tensor image = picture_of(seed_input, type);
      if (sounds) sounds->add_seed(seed_input);
      if (!seed_sheets) {
        tile = sounds ? Tile{static_cast<int>(image.size(2)), static_cast<int>(image.size(1))}
                      : tile_of(image.size(1), image.size(2));
        gallery.reduced = tile.width != image.size(2) || tile.height != image.size(1);
        seed_sheets.emplace(tile, image.size(0));
      }
      seed_sheets->add(image);
      const SeedRecord& seed = seeds[fault.seed];
      shown_seeds.push_back({reader.seed_name(seed.id), rounded(seed.confidence)});
    }
    auto mutator = mutator_index.find(kind_of(fault.rule));
    faults["id"].push_back(fault.id);
    faults["true"].push_back(fault.label);
    faults["pred"].push_back(fault.predicted);
    faults["sure"].push_back(rounded(fault.confidence));
    if (reader.record().by_reference()) faults["said"].push_back(verdict_text(reader, fault));
    bool first = fault.distinct && seen_seeds.insert(fault.seed).second;
    faults["flags"].push_back((fault.distinct ? kDistinct : 0) | (fault.kept() ? kKept : 0) | (first ? kFirst : 0) |
                              (grouped.typical[i] ? kTypical : 0));
    faults["cluster"].push_back(grouped.cluster[i]);
    faults["seed"].push_back(place->second);
    faults["node"].push_back(steps.add(reader.lineage(fault).rules));
    faults["mutator"].push_back(mutator == mutator_index.end() ? -1 : static_cast<std::int64_t>(mutator->second));
    faults["thumb"].push_back(-1);
    faults["file"].push_back(fault.file);
    if (sounds && first) sounds->add_fault(reader, fault, i);
    if (!fault.figures.empty() || !fault.metadata.empty()) remarks[std::to_string(i)] = remarks_on(fault);
  }

  // Mutants of one seed look alike: side by side they compress best. Equal images are stored once.
  std::vector<std::size_t> order(chosen.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(chosen[a].seed, chosen[a].sha256) < std::tie(chosen[b].seed, chosen[b].sha256);
  });
  std::optional<SheetMaker> sheets;
  std::unordered_map<std::string, std::int64_t> place_of;
  Progress progress("pictures", gallery.shown, "faults");
  for (std::size_t first = 0; first < order.size(); first += kGalleryChunk) {
    check_interrupt();
    std::size_t end = std::min(order.size(), first + kGalleryChunk);
    std::vector<const FaultRecord*> group;
    for (std::size_t i = first; i < end; ++i) group.push_back(&chosen[order[i]]);
    std::vector<at::Tensor> images = read_images(reader, group, gallery.bad);
    for (std::size_t i = 0; i < images.size(); ++i) {
      if (!images[i].defined()) continue;
      if (!sheets) sheets.emplace(tile, images[i].size(0));
      auto [place, is_new] = place_of.try_emplace(group[i]->sha256, sheets->size());
      if (is_new) sheets->add(images[i]);
      faults["thumb"][order[first + i]] = place->second;
    }
    progress.advance(static_cast<std::int64_t>(group.size()));
  }
  progress.finish();
  if (seed_sheets) gallery.seed_sheets = seed_sheets->finish();
  gallery.images = sheets ? sheets->size() : 0;
  if (sheets) gallery.fault_sheets = sheets->finish();

  data["faults"] = std::move(faults);
  data["clusters"] = std::move(grouped.clusters);
  data["remarks"] = std::move(remarks);
  data["seeds"] = std::move(shown_seeds);
  data["rules"] = steps.texts();
  data["nodes"] = steps.tree();
  if (sounds) data["sounds"] = sounds->json();
  data["tile"] = {{"width", tile.width}, {"height", tile.height}, {"columns", kSheetColumns}, {"each", kTilesInSheet}};
  return gallery;
}

}  // namespace galvani
