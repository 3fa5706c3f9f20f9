#include "galvani/fuzz/check.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>

#include "fuzz/chain.h"
#include "fuzz/fault_files.h"
#include "fuzz/fault_images.h"
#include "fuzz/folder.h"
#include "fuzz/images.h"
#include "fuzz/loose_ends.h"
#include "fuzz/rows.h"
#include "fuzz/schema.h"
#include "fuzz/seal.h"
#include "fuzz/state.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/data/image.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/islands.h"
#include "galvani/generate/generator.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

std::uintmax_t size_of(const fs::path& path) {
  std::error_code error;
  std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// campaign.db, read so that nothing is made or changed beside it.
class StillStore {
 public:
  explicit StillStore(const fs::path& folder) : with_log_(size_of(folder / kLog) > 0), database_(open(folder)) {}

  Database& database() { return database_; }
  bool with_log() const { return with_log_; }

 private:
  static constexpr const char* kFile = "campaign.db";
  static constexpr const char* kLog = "campaign.db-wal";

  // A log can only be read by who may write beside it.
  Database open(const fs::path& folder) {
    if (!fs::is_regular_file(fs::symlink_status(folder / kFile)))
      bad_input("{}: is missing or not a regular file", (folder / kFile).string());
    if (!with_log_) return {folder / kFile, Database::Mode::still};
    copy_.emplace("galvani-check");
    for (const char* name : {kFile, kLog}) {
      std::error_code error;
      fs::copy_file(folder / name, *copy_ / name, error);
      if (error) fail(ErrorCode::environment, "{}: cannot be made: {}", (*copy_ / name).string(), error.message());
    }
    return {*copy_ / kFile, Database::Mode::read};
  }

  bool with_log_;
  std::optional<TemporaryFolder> copy_;
  Database database_;
};

using Images = std::unordered_map<std::int64_t, at::Tensor>;

class Checker {
 public:
  Checker(fs::path folder, const CheckOptions& options)
      : folder_(std::move(folder)),
        lock_(folder_),
        options_(options),
        record_(CampaignRecord::from_toml(folder_ / "campaign.toml")),
        store_(folder_),
        database_(store_.database()),
        file_((folder_ / "campaign.db").string()) {
    check_schema(database_, file_);
    fault_images_ = std::make_unique<FaultImages>(database_);
  }

  CheckReport run() {
    guarded([&] { check_identity(database_, record_, (folder_ / "campaign.toml").string()); });
    guarded([&] { integrity(); });
    guarded([&] { beginning(); });
    guarded([&] { batches(); });
    guarded([&] {
      for (std::string& problem : loose_ends(database_, file_, {outputs_.all, faults_.all, batches_.all}))
        damage_.push_back(std::move(problem));
    });
    guarded([&] { stray_files(); });
    guarded([&] { snapshots(); });
    guarded([&] { profile(); });
    guarded([&] { seal(); });
    CheckReport report;
    report.parts = {batches_, seeds_, outputs_, faults_, snapshots_};
    report.damage = std::move(damage_);
    report.notes = std::move(notes_);
    return report;
  }

 private:
  // What stops one part is damage; the others are looked at all the same.
  void guarded(const std::function<void()>& part) {
    try {
      part();
    } catch (const Error& e) {
      if (e.code() == ErrorCode::interrupted) throw;
      damage_.emplace_back(e.what());
    }
  }
  static std::string problem_of(const std::function<void()>& part) {
    try {
      part();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  void integrity() {
    Statement rows(database_, "PRAGMA integrity_check(10)");
    while (rows.step()) {
      if (rows.text(0) != "ok") damage_.push_back(fmt::format("{}: {}", file_, printable(rows.text(0), 300)));
    }
  }

  // --- rows and images

  void beginning() {
    Statement last(database_, "SELECT coalesce(max(batch), 0) FROM batches");
    last_batch_ = last.step() ? last.integer(0) : 0;
    batches_.all = last_batch_ + 1;
    Beginning beginning = read_beginning(database_, file_);
    seeds_.all = static_cast<std::int64_t>(beginning.seeds.size());
    if (beginning.seeds.empty()) bad_input("{}: has no seeds", file_);
    bool sound = chained(0, chain_value(beginning));
    QuietDecoders quiet;
    type_ = SampleType::parse(record_.input, (folder_ / "campaign.toml").string());
    std::vector<at::Tensor> images(beginning.seeds.size());
    std::vector<std::string> problems = for_rows(beginning.seeds.size(), [&](std::size_t i) {
      const NewSeed& seed = beginning.seeds[i];
      images[i] = verified_input(seed.encoded, type_, seed.record.sha256, row_name("seed", seed.record.id));
    });
    count(problems, sound, seeds_);
    // An encoder of another version writes other bytes for the same pixels.
    const at::Tensor& first = images.front();
    same_encoder_ = first.defined() && type_.encode(first) == beginning.seeds.front().encoded;
    if (first.defined() && !same_encoder_)
      notes_.emplace_back("files are encoded otherwise here, so of those of faults only the values were compared");
    if (options_.lineages) make_generator(images);
  }

  // Undefined images are those of damaged seeds.
  void make_generator(const std::vector<at::Tensor>& seeds) {
    std::string problem = problem_of([&] {
      for (const at::Tensor& seed : seeds) {
        if (!seed.defined()) bad_input("the seeds, which the generator needs, are damaged");
      }
      GeneratorContext context;
      context.seeds = at::stack(seeds);
      context.rate = type_.rate;
      if (!record_.style.empty()) {
        Dataset style = load_data(record_.style);
        if (content_hash(style) != record_.style_sha256)
          bad_input("{}: the style source has another content than it had", printable(record_.style));
        context.style_images = style.images;
      }
      std::unique_ptr<Generator> made = galvani::make_generator(Spec::parse(record_.settings.generator), context);
      if (made->files_sha256() != record_.generator_sha256)
        bad_input("a file that the generator needs has another content than it had");
      if (made->probe(seeds.front()) != record_.probe.generator)
        bad_input("the generator computes other values here than when the campaign began");
      generator_ = std::move(made);
    });
    if (!problem.empty()) notes_.push_back("mutants were not made again from their parents: " + problem);
  }

  void batches() {
    Statement totals(database_, "SELECT kept, faults FROM batches WHERE batch = ?");
    totals.bind(last_batch_);
    std::int64_t rows = totals.step() ? totals.integer(0) + totals.integer(1) : 0;
    Progress progress("checking", rows, "mutants");
    for (std::int64_t number = 1; number <= last_batch_; ++number) {
      check_interrupt();
      std::string previous = read_chain(database_, number - 1);
      BatchRecord batch = read_batch(database_, file_, number);
      bool sound = chained(number, chain_value(previous, batch));
      Images parents = parents_of(batch);
      QuietDecoders quiet;
      outputs_.all += static_cast<std::int64_t>(batch.inputs.size());
      count(for_rows(batch.inputs.size(), [&](std::size_t i) { check_output(batch.inputs[i], parents); }), sound,
            outputs_);
      faults_.all += static_cast<std::int64_t>(batch.faults.size());
      std::vector<std::string> problems =
          for_rows(batch.faults.size(), [&](std::size_t i) { check_fault(batch.faults[i], parents); });
      for (std::size_t i = 0; i < problems.size(); ++i) {
        const FaultRecord& fault = batch.faults[i];
        if (!fault.distinct && damaged_files_.count(fault.file) != 0)
          problems[i] = fmt::format("{} shares {}, which is damaged", row_name("fault", fault.id), fault.file);
        if (fault.distinct) {
          if (!fault_images_->find(fault)) files_.insert(fault.file);
          if (!problems[i].empty()) damaged_files_.insert(fault.file);
        }
      }
      count(problems, sound, faults_);
      last_fault_ = std::max(last_fault_, batch.counters.faults);
      progress.advance(static_cast<std::int64_t>(batch.inputs.size() + batch.faults.size()));
    }
  }

  // Whether a batch has the value that its rows give.
  bool chained(std::int64_t batch, const std::string& value) {
    bool same = read_chain(database_, batch) == value;
    batches_.intact += same ? 1 : 0;
    if (!same) damage_.push_back(broken_chain(file_, batch));
    return same;
  }

  // What is wrong with each row, side by side; empty: nothing.
  static std::vector<std::string> for_rows(std::size_t rows, const std::function<void(std::size_t)>& check) {
    std::vector<std::string> problems(rows);
    workers().run(static_cast<std::int64_t>(rows), [&](std::int64_t index, int) {
      auto i = static_cast<std::size_t>(index);
      problems[i] = problem_of([&] { check(i); });
    });
    return problems;
  }
  // Rows of a batch that is not what it was are not trusted either.
  void count(std::vector<std::string> problems, bool sound, CheckedPart& part) {
    for (std::string& problem : problems) {
      part.intact += sound && problem.empty() ? 1 : 0;
      if (!problem.empty()) damage_.push_back(std::move(problem));
    }
  }
  std::string row_name(const char* kind, std::int64_t id) const { return fmt::format("{}, {} {}", file_, kind, id); }

  Images parents_of(const BatchRecord& batch) {
    Images images;
    if (generator_ == nullptr) return images;
    Statement row(database_,
                  "SELECT image, sha256 FROM inputs WHERE id = ?1 UNION ALL SELECT image, sha256 FROM seeds WHERE id = "
                  "?1");
    QuietDecoders quiet;
    auto fetch = [&](std::int64_t id) {
      auto found = images.try_emplace(id);
      if (!found.second) return;
      at::Tensor& image = found.first->second;
      row.reset();
      row.bind(id);
      // One that is damaged is named where its own row is looked at.
      problem_of([&] {
        if (row.step()) image = verified_input(row.blob(0), type_, row.text(1), "");
      });
    };
    auto fetch_both = [&](const MutantRecord& mutant) {
      fetch(mutant.parent);
      fetch(mutant.seed);
    };
    for (const NewInput& input : batch.inputs) fetch_both(input.record);
    for (const FaultRecord& fault : batch.faults) fetch_both(fault);
    return images;
  }

  void check_output(const NewInput& input, const Images& parents) const {
    std::string name = row_name("kept mutant", input.record.id);
    verified_input(input.encoded, type_, input.record.sha256, name);
    check_lineage(input.record, parents, name);
  }

  void check_fault(const FaultRecord& fault, const Images& parents) const {
    // A process that was killed has stored the rows, but not moved the file to its place.
    fs::path staged = fs::path("state") / "new" / fs::path(fault.file).filename();
    bool moved = fs::exists(fs::symlink_status(folder_ / fault.file)) || !fs::exists(folder_ / staged);
    fs::path place = moved ? fs::path(fault.file) : staged;
    std::optional<std::string> stored = fault_images_->find(fault);
    std::string png = stored ? *stored : fault_bytes(folder_, fault, place, type_);
    std::string path = stored ? row_name("image of fault", fault.id) : (folder_ / place).string();
    if (fault.distinct) {
      at::Tensor image = verified_input(png, type_, fault.sha256, path);
      if (same_encoder_ && png != encode_mutant(image.data_ptr(), type_))
        bad_input("{}: has the right values, but is not the file that was written", path);
    }
    // What is kept was made again as an output.
    if (!fault.kept()) check_lineage(fault, parents, row_name("fault", fault.id));
  }

  void check_lineage(const MutantRecord& mutant, const Images& parents, const std::string& name) const {
    if (generator_ == nullptr || mutant.unrepeatable) return;
    auto parent = parents.find(mutant.parent);
    auto seed = parents.find(mutant.seed);
    for (auto found : {parent, seed}) {
      if (found == parents.end() || !found->second.defined())
        bad_input("{}: cannot be made again, for its parent {} or its seed {} is damaged", name, mutant.parent,
                  mutant.seed);
    }
    at::Tensor made = generator_->make(mutant.rule, parent->second, seed->second);
    if (pixel_hash(made.contiguous()) != mutant.sha256)
      bad_input("{}: is not what its rule, {}, makes of its parent {}", name, printable(mutant.rule), mutant.parent);
  }

  // --- files

  void stray_files() {
    if (std::int64_t lone = fault_images_->without_fault(); lone > 0)
      damage_.push_back(fmt::format("{}: {} of fault_images belong to no fault", file_, counted(lone, "row")));
    std::int64_t left = 0;
    std::error_code error;
    fs::directory_iterator all(folder_ / "faults", error);
    if (error) bad_input("{}: cannot be read: {}", (folder_ / "faults").string(), error.message());
    for (const fs::directory_entry& entry : all) {
      std::string name = entry.path().filename().string();
      if (files_.count("faults/" + name) != 0) continue;
      std::int64_t id = 0;
      std::from_chars(name.data(), name.data() + name.size(), id);
      if (id > last_fault_) {
        ++left;
      } else {
        damage_.push_back(fmt::format("{}: no fault has this file", printable(entry.path().string(), 300)));
      }
    }
    if (left > 0)
      notes_.push_back(
          fmt::format("faults/ has {} files with numbers beyond the last fault in the store", format_count(left)));
  }

  void snapshots() {
    Snapshots snapshots(folder_, record_.identity());
    for (std::int64_t batch : snapshots.batches()) {
      if (batch > last_batch_) {
        notes_.push_back(fmt::format("the snapshot of batch {} is newer than the store; it will not be used", batch));
        continue;
      }
      ++snapshots_.all;
      std::string problem = problem_of([&] { snapshots.check(batch, read_chain(database_, batch)); });
      snapshots_.intact += problem.empty() ? 1 : 0;
      if (!problem.empty()) damage_.push_back(problem);
    }
  }

  void profile() {
    if (record_.profile_sha256.empty()) return;
    fs::path path = stored_profile(folder_);
    if (Profile::parts_hash(path) != record_.profile_sha256)
      bad_input("{}: is not the profile that the campaign began with", path.string());
  }

  void seal() {
    std::optional<Seal> seal = read_seal(folder_);
    if (seal && seal->batch == last_batch_ && !store_.with_log()) {
      for (std::string& problem : broken_by(*seal, folder_)) damage_.push_back((folder_ / problem).string());
      return;
    }
    notes_.push_back(fmt::format(
        "{}, so bytes of campaign.db between its rows, and paths and comments in campaign.toml, were not compared",
        seal ? "the last session did not end by itself" : "there is no seal of a session that ended by itself"));
  }

  fs::path folder_;
  FolderReadLock lock_;
  CheckOptions options_;
  CampaignRecord record_;
  StillStore store_;
  Database& database_;
  std::unique_ptr<FaultImages> fault_images_;
  std::string file_;
  SampleType type_;
  bool same_encoder_ = false;
  std::unique_ptr<Generator> generator_;  // null: lineages are not looked at
  std::int64_t last_batch_ = 0;
  std::int64_t last_fault_ = 0;
  std::set<std::string> files_, damaged_files_;  // of distinct faults
  CheckedPart batches_{"batches"}, seeds_{"seeds"}, outputs_{"outputs"}, faults_{"faults"}, snapshots_{"snapshots"};
  std::vector<std::string> damage_, notes_;
};

// The report of one island to those of others.
void add(CheckReport& all, CheckReport island, const fs::path& folder) {
  if (all.parts.empty()) {
    all.parts = island.parts;
  } else {
    for (std::size_t i = 0; i < all.parts.size(); ++i) {
      all.parts[i].all += island.parts[i].all;
      all.parts[i].intact += island.parts[i].intact;
    }
  }
  std::move(island.damage.begin(), island.damage.end(), std::back_inserter(all.damage));
  for (const std::string& note : island.notes) all.notes.push_back(fmt::format("{}: {}", folder.string(), note));
}

}  // namespace

CheckReport check_campaign(const fs::path& folder, const CheckOptions& options) {
  require_folder(folder);
  if (std::vector<fs::path> islands = islands_in(folder); !is_campaign(folder) && !islands.empty()) {
    CheckReport all;
    for (const fs::path& island : islands) add(all, check_campaign(island, options), island);
    return all;
  }
  if (!is_campaign(folder)) bad_input("{}: is not a campaign's folder, for it has no campaign.toml", folder.string());
  return Checker(folder, options).run();
}

}  // namespace galvani
