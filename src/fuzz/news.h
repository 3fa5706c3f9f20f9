// What islands (galvani/fuzz/islands.h) tell each other: entries they have found themselves in one round, and what
// those were made of. It is read from the sender's store, so that a round that is repeated hears the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/archive.h"
#include "galvani/fuzz/records.h"

namespace galvani {

struct NewsRow {
  InputRecord record;  // numbers are the sender's
  std::string encoded;
  bool fresh = false;  // found in this round; others are there because something fresh was made of them
};

struct News {
  std::int64_t island = 0;    // the sender's number
  std::vector<NewsRow> rows;  // in the order of their numbers
};

void put_news(ArchiveWriter& out, const News& news);
News get_news(ArchiveReader& in);

}  // namespace galvani
