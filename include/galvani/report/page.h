// A campaign as one HTML page that needs nothing else: no network, no other files, no server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "galvani/fuzz/reader.h"

namespace galvani {

class Network;

struct PageOptions {
  std::int64_t most = 10000;   // faults in the gallery
  Network* network = nullptr;  // the campaign's model, to group faults by what it sees in them; null: no clusters
};

struct Page {
  std::string html;
  std::int64_t faults = 0;       // of the campaign
  std::int64_t shown = 0;        // in the gallery
  std::int64_t images = 0;       // different ones among them
  std::string remarks;           // what is in it, for its last line
  std::vector<std::string> bad;  // files that are gone, damaged or changed; shown without a picture
};

// The same campaign gives the same page. Ctrl-C is honoured.
Page make_page(const CampaignReader& reader, const PageOptions& options = {});

}  // namespace galvani
