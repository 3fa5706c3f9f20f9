// The faults of a page: which ones, their pictures, and what is said about each, as columns of numbers.
#pragma once

#include <string>
#include <vector>

#include "galvani/base/json.h"
#include "galvani/fuzz/reader.h"
#include "galvani/report/page.h"
#include "report/sprites.h"

namespace galvani {

struct Gallery {
  std::int64_t shown = 0;
  std::int64_t shown_distinct = 0;
  std::int64_t distinct = 0;  // of the campaign
  std::int64_t images = 0;
  Tile tile;
  bool reduced = false;  // thumbnails are smaller than the images
  std::vector<std::string> bad;
  std::vector<std::string> seed_sheets;
  std::vector<std::string> fault_sheets;
};

// At most `options.most` faults: one of every seed, then other distinct ones, evenly taken; repetitions fill what is
// left. Adds "faults", "seeds", "clusters", "remarks", "rules", "nodes" and "tile" to `data`,
// and of sounds "sounds".
Gallery make_gallery(const CampaignReader& reader, const PageOptions& options, Json& data);

}  // namespace galvani
