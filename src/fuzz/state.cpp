#include "fuzz/state.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "fuzz/rows.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/rng.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSnapshotKind = "campaign snapshot";
constexpr std::uint32_t kSnapshotVersion = 3;
constexpr std::uint32_t kOldestSnapshot = 2;
constexpr std::size_t kKeptSnapshots = 2;
constexpr std::string_view kPrefix = "snapshot-";

void put_yields(ArchiveWriter& out, const std::vector<YieldRecord>& yields) {
  out.put(static_cast<std::uint64_t>(yields.size()));
  for (const YieldRecord& yield : yields) put_fields(out, yield);
}

std::vector<YieldRecord> get_yields(ArchiveReader& in) {
  std::vector<YieldRecord> result;
  auto n = in.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < n; ++i) get_fields(in, result.emplace_back());
  return result;
}

}  // namespace

std::int64_t SeenImages::first(const std::string& sha256, std::int64_t label, std::int64_t id) {
  Key key{0, 0};
  std::from_chars(sha256.data(), sha256.data() + 16, key.a, 16);
  std::from_chars(sha256.data() + 16, sha256.data() + 32, key.b, 16);
  key.b ^= mix(0, static_cast<std::uint64_t>(label));
  return ids_.emplace(key, id).first->second;
}

Snapshots::Snapshots(const fs::path& folder, std::string campaign)
    : folder_(folder / "state"), staging_(folder), campaign_(std::move(campaign)) {}

fs::path Snapshots::path(std::int64_t batch) const {
  return folder_ / fmt::format("{}{:08}", kPrefix, batch);
}

std::vector<std::int64_t> Snapshots::batches() const {
  std::vector<std::int64_t> result;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(kPrefix, 0) != 0) continue;
    std::int64_t batch = 0;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data() + kPrefix.size(), end, batch).ptr == end) result.push_back(batch);
  }
  std::sort(result.begin(), result.end(), std::greater<>());
  return result;
}

void Snapshots::save(const CampaignState& state, const std::string& chain) const {
  ArchiveWriter out;
  out.put(campaign_);
  out.put(chain);
  put_fields(out, state.counters);
  out.put(state.last_kept);
  put_yields(out, state.yields.kinds);
  put_yields(out, state.yields.classes);
  std::vector<std::int64_t> picks;
  for (const Entry& entry : state.corpus.entries()) picks.push_back(entry.picks);
  out.put(picks);
  state.guide->save(out);
  fs::path file = path(state.counters.batches);
  write_sealed(staging_.path(file.filename().string()), kSnapshotKind, kSnapshotVersion, out.bytes());
  staging_.replace(fs::path("state") / file.filename());
  std::vector<std::int64_t> all = batches();
  std::error_code ignored;
  for (std::size_t i = kKeptSnapshots; i < all.size(); ++i) fs::remove(path(all[i]), ignored);
}

void Snapshots::read_head(ArchiveReader& in, std::uint32_t version, std::int64_t batch, const std::string& chain,
                          CampaignCounters& counters) const {
  if (in.get_text() != campaign_) in.broken("belongs to another campaign");
  if (in.get_text() != chain) in.broken("was taken of a state that is not in the store");
  get_fields(in, counters, version > kOldestSnapshot);
  if (counters.batches != batch) in.broken("belongs to another batch");
}

void Snapshots::check(std::int64_t batch, const std::string& chain) const {
  std::uint32_t version = kOldestSnapshot;
  std::string payload = read_sealed(path(batch), kSnapshotKind, kSnapshotVersion, &version);
  ArchiveReader in(payload, path(batch).string());
  CampaignCounters counters;
  read_head(in, version, batch, chain, counters);
}

Snapshots::Loaded Snapshots::load(std::int64_t batch, const std::string& chain, Guide& guide) const {
  fs::path file = path(batch);
  std::string bytes = made_by_first([&] {
    std::uint32_t found = kOldestSnapshot;
    ArchiveWriter out;
    std::string payload = read_sealed(file, kSnapshotKind, kSnapshotVersion, &found);
    out.put(found);
    return out.bytes() + payload;
  });
  ArchiveReader in(bytes, file.string());
  auto version = in.get<std::uint32_t>();
  Loaded loaded;
  read_head(in, version, batch, chain, loaded.counters);
  loaded.last_kept = in.get<std::int64_t>();
  loaded.yields.kinds = get_yields(in);
  loaded.yields.classes = get_yields(in);
  loaded.picks = in.get_vector<std::int64_t>();
  guide.load(in);
  in.expect_end();
  return loaded;
}

}  // namespace galvani
