#include "fuzz/news.h"

#include "fuzz/rows.h"

namespace galvani {

void put_news(ArchiveWriter& out, const News& news) {
  out.put(news.island);
  out.put(static_cast<std::uint64_t>(news.rows.size()));
  for (const NewsRow& row : news.rows) {
    put_fields(out, row.record);
    out.put(row.encoded);
    out.put(row.fresh);
  }
}

News get_news(ArchiveReader& in) {
  News news;
  news.island = in.get<std::int64_t>();
  auto rows = in.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < rows; ++i) {
    NewsRow& row = news.rows.emplace_back();
    get_fields(in, row.record);
    row.encoded = in.get_text(in.rest().size());
    row.fresh = in.get<bool>();
  }
  return news;
}

}  // namespace galvani
