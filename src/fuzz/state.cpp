#include "fuzz/state.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "galvani/base/error.h"
#include "galvani/base/rng.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kKind = "campaign snapshot";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kKeptSnapshots = 2;
constexpr std::string_view kPrefix = "snapshot-";

std::vector<std::int64_t CampaignCounters::*> counts() {
  using C = CampaignCounters;
  return {&C::batches, &C::iterations,      &C::mutants,     &C::valid,  &C::kept,      &C::distinct_kept,
          &C::faults,  &C::distinct_faults, &C::kept_faults, &C::resets, &C::reexamined};
}

void put(ArchiveWriter& out, const std::vector<YieldRecord>& yields) {
  out.put(static_cast<std::uint64_t>(yields.size()));
  for (const YieldRecord& y : yields) {
    out.put(y.name);
    for (std::int64_t n : {y.mutants, y.valid, y.kept, y.faults, y.kept_faults}) out.put(n);
  }
}

std::vector<YieldRecord> get_yields(ArchiveReader& in) {
  std::vector<YieldRecord> result;
  auto n = in.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < n; ++i) {
    YieldRecord y;
    y.name = in.get_text();
    for (std::int64_t* count : {&y.mutants, &y.valid, &y.kept, &y.faults, &y.kept_faults})
      *count = in.get<std::int64_t>();
    result.push_back(std::move(y));
  }
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

Snapshots::Snapshots(fs::path folder, std::string campaign)
    : folder_(std::move(folder)), campaign_(std::move(campaign)) {}

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

void Snapshots::save(const CampaignState& state) const {
  ArchiveWriter out;
  out.put(campaign_);
  for (auto member : counts()) out.put(state.counters.*member);
  out.put(state.counters.covered);
  out.put(state.counters.coverable);
  out.put(state.last_kept);
  put(out, state.yields.mutators);
  put(out, state.yields.classes);
  std::vector<std::int64_t> picks;
  for (const Entry& entry : state.corpus.entries()) picks.push_back(entry.picks);
  out.put(picks);
  state.guide->save(out);
  write_sealed(path(state.counters.batches), kKind, kVersion, out.bytes());
  std::vector<std::int64_t> all = batches();
  std::error_code ignored;
  for (std::size_t i = kKeptSnapshots; i < all.size(); ++i) fs::remove(path(all[i]), ignored);
}

Snapshots::Loaded Snapshots::load(std::int64_t batch, Guide& guide) const {
  fs::path file = path(batch);
  std::string payload = read_sealed(file, kKind, kVersion);
  ArchiveReader in(payload, file.string());
  if (in.get_text() != campaign_) in.broken("belongs to another campaign");
  Loaded loaded;
  for (auto member : counts()) loaded.counters.*member = in.get<std::int64_t>();
  loaded.counters.covered = in.get<double>();
  loaded.counters.coverable = in.get<double>();
  if (loaded.counters.batches != batch) in.broken("belongs to another batch");
  loaded.last_kept = in.get<std::int64_t>();
  loaded.yields.mutators = get_yields(in);
  loaded.yields.classes = get_yields(in);
  loaded.picks = in.get_vector<std::int64_t>();
  guide.load(in);
  in.expect_end();
  return loaded;
}

}  // namespace galvani
