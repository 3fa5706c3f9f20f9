#include "galvani/fuzz/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "fuzz/chain.h"
#include "fuzz/fault_images.h"
#include "fuzz/folder.h"
#include "fuzz/images.h"
#include "fuzz/loose_ends.h"
#include "fuzz/rows.h"
#include "fuzz/schema.h"
#include "fuzz/seal.h"
#include "fuzz/state.h"
#include "fuzz/store.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/islands.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr const char* kUnfinished = ".merging";

// One island, as it is at one moment.
struct Shard {
  explicit Shard(const fs::path& where)
      : folder(where),
        file((where / "campaign.db").string()),
        record(CampaignRecord::from_toml(where / "campaign.toml")),
        database(where / "campaign.db", Database::Mode::read) {
    check_schema(database, file);
    check_identity(database, record, (where / "campaign.toml").string());
    if (record.settings.island.empty())
      bad_usage("{}: is a campaign of its own, not an island of a run; compare campaigns with galvani compare",
                folder.string());
    island = parse_island(record.settings.island);
    // All that is read from here on is of the same moment, also while the island goes on.
    database.execute("BEGIN");
    fault_images = std::make_unique<FaultImages>(database);
    Statement last(database, "SELECT max(batch) FROM batches");
    batches = last.step() ? last.integer(0) : 0;
  }

  // A campaign made of damaged rows would pass for a sound one.
  void expect_chain(std::int64_t batch, const std::string& value) {
    ++accounted.batches;
    galvani::expect_chain(database, folder, batch, value);
  }
  void expect_whole() {
    std::vector<std::string> problems = loose_ends(database, file, accounted);
    if (!problems.empty()) refuse_damaged(folder, problems.front());
  }

  std::string chain() { return read_chain(database, batches); }
  double seconds(std::int64_t batch) {
    Statement row(database, "SELECT coalesce(max(seconds), 0) FROM clock WHERE batch <= ?");
    row.bind(batch);
    return row.step() ? row.real(0) : 0;
  }
  // A file may be on its way to its place.
  std::string fault_file_bytes(const FaultRecord& fault, const SampleType& type) const {
    if (std::optional<std::string> stored = fault_images->find(fault)) return *stored;
    fs::path staged = fs::path("state") / "new" / fs::path(fault.file).filename();
    bool moving = !fs::exists(folder / fault.file) && fs::exists(folder / staged);
    return fault_bytes(folder, fault, moving ? staged : fs::path(fault.file), type);
  }

  fs::path folder;
  std::string file;
  CampaignRecord record;
  Database database;
  std::unique_ptr<FaultImages> fault_images;
  Island island;
  std::int64_t batches = 0;
  CampaignCounters counters;                           // of the last batch that was read
  RowCounts accounted;                                 // of the batches that were read
  std::unordered_map<std::int64_t, std::int64_t> ids;  // its kept mutants: their numbers in the merged campaign
};

std::vector<std::unique_ptr<Shard>> open_shards(const std::vector<fs::path>& folders) {
  std::vector<std::unique_ptr<Shard>> shards;
  for (const fs::path& folder : folders) {
    if (is_campaign(folder)) {
      shards.push_back(std::make_unique<Shard>(folder));
      continue;
    }
    require_folder(folder);
    std::vector<fs::path> inside = islands_in(folder);
    if (inside.empty()) bad_usage("{}: is neither an island's folder nor one with islands in it", folder.string());
    for (const fs::path& island : inside) shards.push_back(std::make_unique<Shard>(island));
  }
  std::sort(shards.begin(), shards.end(),
            [](const auto& a, const auto& b) { return a->island.number < b->island.number; });
  for (std::size_t i = 1; i < shards.size(); ++i) {
    Shard& shard = *shards[i];
    if (shard.island.number == shards[i - 1]->island.number)
      bad_usage("{} and {} are the same island", shards[i - 1]->folder.string(), shard.folder.string());
    CampaignRecord first = shards.front()->record;
    first.settings.island = Island{1, shards.front()->island.of}.str();
    CampaignRecord other = shard.record;
    other.settings.island = Island{1, shard.island.of}.str();
    if (first.identity() == other.identity()) continue;
    std::vector<std::string> different = first.differences(other);
    bad_usage("{} and {} are not islands of one run: {}", shards.front()->folder.string(), shard.folder.string(),
              different.empty() ? "they computed other values when they began" : different.front());
  }
  return shards;
}

// "all/4", or "1,3/4".
std::string island_text(const std::vector<std::unique_ptr<Shard>>& shards) {
  std::int64_t of = shards.front()->island.of;
  if (static_cast<std::int64_t>(shards.size()) == of) return fmt::format("all/{}", of);
  std::string numbers;
  for (const auto& shard : shards) numbers += fmt::format("{},", shard->island.number);
  if (shards.size() > 1) numbers.pop_back();  // one alone keeps it, so that it is no island that can be gone on with
  return fmt::format("{}/{}", numbers, of);
}

class Merger {
 public:
  Merger(std::vector<std::unique_ptr<Shard>> shards, fs::path folder)
      : shards_(std::move(shards)), folder_(std::move(folder)) {
    record_ = shards_.front()->record;
    record_.settings.island = island_text(shards_);
    type_ = SampleType::parse(record_.input, shards_.front()->file);
  }

  void run() {
    FolderLock lock(folder_);
    begin_folder(folder_, Begun::merge);
    try {
      fill();
    } catch (...) {
      try {
        take_back_merge(folder_);
      } catch (const Error&) {
        // The next merge clears it away, or says what is in its way.
      }
      throw;
    }
  }

 private:
  void fill() {
    if (fs::exists(stored_profile(shards_.front()->folder)))
      fs::copy_file(stored_profile(shards_.front()->folder), stored_profile(folder_));
    begin();
    Store store(folder_, shards_.front()->record.settings.keep_files);
    std::int64_t last = 0;
    for (const auto& shard : shards_) last = std::max(last, shard->batches);
    Progress progress("merging", last, "batches");
    for (std::int64_t number = 1; number <= last; ++number) {
      check_interrupt();
      add_batch(store, number, number == last);
      progress.advance(1);
    }
    Staging staging(folder_);
    write_file(staging.path("campaign.toml"), record_.to_toml());
    staging.place("campaign.toml");
    end_beginning(folder_);
    if (store.checkpoint()) write_seal(folder_, last);
  }

  void begin() {
    Beginning beginning = read_beginning(shards_.front()->database, shards_.front()->file);
    seeds_ = static_cast<std::int64_t>(beginning.seeds.size());
    beginning.identity = record_.identity();
    std::string value = chain_value(beginning);
    for (const auto& shard : shards_) {
      Beginning theirs = read_beginning(shard->database, shard->file);
      shard->expect_chain(0, chain_value(theirs));
      if (shard->batches == 0) shard->expect_whole();
      theirs.identity = beginning.identity;
      if (chain_value(theirs) != value)
        bad_input("{}: its seeds are not those of {}; one of them is damaged", shard->folder.string(),
                  shards_.front()->folder.string());
      shard->counters = theirs.counters;
    }
    for (const NewSeed& seed : beginning.seeds) seen_kept_.first(seed.record.sha256, seed.record.label, seed.record.id);
    for (const std::string& name : beginning.classes) no_yields_.classes.push_back({name, 0, 0, 0, 0, 0});
    merged_ = beginning.counters;
    Store::create(folder_, beginning);
  }

  // The batches with this number of all islands, one after the other.
  void add_batch(Store& store, std::int64_t number, bool last) {
    BatchRecord merged;
    double seconds = 0;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      Shard& shard = *shards_[i];
      seconds += shard.seconds(number);
      if (number > shard.batches) continue;
      BatchRecord batch = read_batch(shard.database, shard.file, number);
      shard.expect_chain(number, chain_value(read_chain(shard.database, number - 1), batch));
      shard.accounted.inputs += static_cast<std::int64_t>(batch.inputs.size());
      shard.accounted.faults += static_cast<std::int64_t>(batch.faults.size());
      for (NewInput& input : batch.inputs) add_input(shard, i, std::move(input), merged);
      for (FaultRecord& fault : batch.faults) add_fault(shard, i, std::move(fault), merged);
      shard.counters = batch.counters;
      if (number == shard.batches) shard.expect_whole();
    }
    count(number);
    merged.counters = merged_;
    Yields yields = no_yields_;
    PickSum sum;
    std::vector<std::int64_t> pick_counts;
    // Of picks and yields the islands' stores have totals alone, which therefore come with the last batch.
    if (last) {
      for (const auto& [id, times] : all_picks()) {
        merged.picks.push_back(id);
        pick_counts.push_back(times);
        sum.add(id, times);
      }
      yields = all_yields();
    }
    merged.totals = totals_value(yields, sum);
    store.add(merged, yields, pick_counts, seconds);
  }

  std::int64_t here(const Shard& shard, std::int64_t id) const {
    if (id <= seeds_) return id;
    auto found = shard.ids.find(id);
    if (found == shard.ids.end()) bad_input("{}: has no kept mutant {}; it is damaged", shard.file, id);
    return found->second;
  }

  // Iterations of the islands take turns.
  void place(const Shard& shard, std::size_t turn, MutantRecord& mutant) const {
    mutant.parent = here(shard, mutant.parent);
    mutant.iteration =
        (mutant.iteration - 1) * static_cast<std::int64_t>(shards_.size()) + static_cast<std::int64_t>(turn) + 1;
  }

  // What came from another island is there already, unless that one is not among the merged.
  void add_input(Shard& shard, std::size_t turn, NewInput input, BatchRecord& merged) {
    InputRecord& record = input.record;
    std::int64_t id_there = record.id;
    if (record.origin == 0) record.origin = packed_origin(shard.island.number, record.id);
    auto [known, fresh] = by_origin_.emplace(record.origin, next_input());
    shard.ids[id_there] = known->second;
    if (!fresh) return;
    place(shard, turn, record);
    record.id = known->second;
    record.distinct = seen_kept_.first(record.sha256, record.label, record.id) == record.id;
    ++merged_.kept;
    merged_.distinct_kept += record.distinct ? 1 : 0;
    merged.inputs.push_back(std::move(input));
  }
  std::int64_t next_input() const { return seeds_ + merged_.kept + 1; }

  void add_fault(const Shard& shard, std::size_t turn, FaultRecord fault, BatchRecord& merged) {
    FaultRecord there = fault;
    place(shard, turn, fault);
    fault.origin = packed_origin(shard.island.number, fault.id);
    if (fault.kept()) fault.input = here(shard, fault.input);
    fault.id = ++merged_.faults;
    std::int64_t first = seen_fault_.first(fault.sha256, fault.label, fault.id);
    fault.distinct = first == fault.id;
    fault.file = fault_file(first, fault.label, fault.predicted, type_);
    merged_.distinct_faults += fault.distinct ? 1 : 0;
    merged_.kept_faults += fault.kept() ? 1 : 0;
    merged.fault_images.push_back(fault.distinct ? shard.fault_file_bytes(there, type_) : "");
    merged.faults.push_back(std::move(fault));
  }

  // What does not follow from the rows.
  void count(std::int64_t number) {
    CampaignCounters sum;
    for (const auto& shard : shards_) {
      const CampaignCounters& c = shard->counters;
      sum.iterations += c.iterations;
      sum.mutants += c.mutants;
      sum.valid += c.valid;
      sum.resets += c.resets;
      sum.reexamined += c.reexamined;
      sum.passes += c.passes;
      // Of what islands cover together the stores do not tell; it is at least what one of them covers.
      sum.covered = std::max(sum.covered, c.covered);
      sum.coverable = std::max(sum.coverable, c.coverable);
    }
    sum.batches = number;
    sum.kept = merged_.kept;
    sum.distinct_kept = merged_.distinct_kept;
    sum.faults = merged_.faults;
    sum.distinct_faults = merged_.distinct_faults;
    sum.kept_faults = merged_.kept_faults;
    merged_ = sum;
  }

  std::map<std::int64_t, std::int64_t> all_picks() {
    std::map<std::int64_t, std::int64_t> all;
    for (const auto& shard : shards_) {
      Statement rows(shard->database, "SELECT id, count FROM picks");
      while (rows.step()) all[here(*shard, rows.integer(0))] += rows.integer(1);
    }
    return all;
  }

  static void add_yield(YieldRecord& sum, const YieldRecord& part) {
    sum.mutants += part.mutants;
    sum.valid += part.valid;
    sum.kept += part.kept;
    sum.faults += part.faults;
    sum.kept_faults += part.kept_faults;
  }

  Yields all_yields() {
    Yields all = no_yields_;
    std::map<std::string, YieldRecord> kinds;
    for (const auto& shard : shards_) {
      Yields part = read_yields(shard->database);
      for (std::size_t i = 0; i < std::min(part.classes.size(), all.classes.size()); ++i)
        add_yield(all.classes[i], part.classes[i]);
      for (const YieldRecord& kind : part.kinds) {
        YieldRecord& sum = kinds[kind.name];
        sum.name = kind.name;
        add_yield(sum, kind);
      }
    }
    for (auto& [name, yield] : kinds) all.kinds.push_back(std::move(yield));
    return all;
  }

  std::vector<std::unique_ptr<Shard>> shards_;
  fs::path folder_;
  CampaignRecord record_;
  SampleType type_;
  std::int64_t seeds_ = 0;
  CampaignCounters merged_;
  Yields no_yields_;
  SeenImages seen_kept_, seen_fault_;
  std::unordered_map<std::int64_t, std::int64_t> by_origin_;  // numbers in the merged campaign
};

// In a folder beside the wanted one, which appears when all is there.
void merge_into(std::vector<std::unique_ptr<Shard>> shards, const fs::path& output) {
  fs::path made = output;
  made += kUnfinished;
  std::error_code error;
  fs::file_status there = fs::symlink_status(made, error);
  if (fs::exists(there) && !fs::is_directory(there)) bad_usage("{}: is in the way; move it away", made.string());
  Merger(std::move(shards), made).run();
  fs::rename(made, output, error);
  if (error) fail(ErrorCode::environment, "{}: cannot be made: {}", output.string(), error.message());
}

}  // namespace

bool holds_campaign(const fs::path& folder) {
  return is_campaign(folder) || !islands_in(folder).empty();
}

void merge_islands(const std::vector<fs::path>& folders, const fs::path& output) {
  std::error_code error;
  fs::path folder = output.has_filename() ? output : output.parent_path();
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    bad_usage("{}: exists already; choose another folder with -o", folder.string());
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  merge_into(open_shards(folders), folder);
}

fs::path merged_view(const fs::path& run) {
  fs::path place = cache_folder() / "merged" / sha256(fs::canonical(run).string()).substr(0, 32);
  fs::path view = place / "view";
  FolderLock lock(place);
  std::vector<std::unique_ptr<Shard>> shards = open_shards({run});
  std::string state;
  for (const auto& shard : shards) state += fmt::format("{} {}\n", shard->record.settings.island, shard->chain());
  fs::path note = place / "state";
  std::error_code error;
  if (is_campaign(view) && fs::exists(note, error) && read_file(note) == state) return view;
  fs::remove(note, error);
  fs::remove_all(view, error);
  merge_into(std::move(shards), view);
  write_file(note, state);
  return view;
}

}  // namespace galvani
