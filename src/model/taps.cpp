#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "galvani/base/error.h"
#include "galvani/base/options.h"
#include "galvani/model/network.h"

namespace galvani {

std::vector<int> Network::select_taps(std::string_view spec) const {
  const std::vector<Tap>& all = taps();
  if (all.empty() && spec == "default") return {};
  std::set<int> chosen;
  std::size_t start = 0;
  while (start <= spec.size()) {
    std::size_t comma = std::min(spec.find(',', start), spec.size());
    std::string word(spec.substr(start, comma - start));
    start = comma + 1;
    bool found = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Tap& tap = all[i];
      bool layer = tap.kind != TapKind::activation;
      bool match = word == "all" || (word == "default" && layer) || (word == "relu" && !layer) || tap.name == word ||
                   tap.node == word || tap.path == word || ::fnmatch(word.c_str(), tap.name.c_str(), 0) == 0;
      if (match) chosen.insert(static_cast<int>(i));
      found = found || match;
    }
    if (!found) {
      std::vector<std::string> names;
      for (const Tap& tap : all) names.push_back(tap.name);
      std::string near = nearest_word(word, names);
      bad_usage("{} has no tap '{}'{}; 'galvani inspect' lists them", info().path, printable(word),
                near.empty() ? "" : ", did you mean '" + near + "'?");
    }
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace galvani
