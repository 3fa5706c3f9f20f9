#include "galvani/fuzz/reader.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "fuzz/fault_images.h"
#include "fuzz/folder.h"
#include "fuzz/images.h"
#include "fuzz/rows.h"
#include "fuzz/schema.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/nesting.h"
#include "galvani/data/image.h"
#include "galvani/fuzz/campaign.h"
#include "galvani/fuzz/merge.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

std::string select_faults() {
  return "SELECT " + columns<FaultRecord>() + " FROM faults ";
}
std::string select_inputs() {
  return "SELECT " + columns<InputRecord>("inputs") +
         ", coalesce(picks.count, 0) FROM inputs LEFT JOIN picks ON picks.id = inputs.id ";
}
std::string select_batches() {
  return "SELECT " + columns<CampaignCounters>("batches") +
         ", coalesce(clock.seconds, 0) FROM batches LEFT JOIN clock ON clock.batch = batches.batch ";
}

FaultRecord fault_of(const Statement& row) {
  FaultRecord record;
  read_row(row, record);
  return record;
}

InputRecord input_of(const Statement& row) {
  InputRecord record;
  record.picks = row.integer(read_row(row, record));
  return record;
}

TimelinePoint point_of(const Statement& row) {
  TimelinePoint point;
  point.seconds = row.real(read_row(row, point));
  return point;
}

}  // namespace

struct CampaignReader::Impl {
  Impl(fs::path given, const fs::path& where, CampaignRecord stated)
      : opened(std::move(given)),
        folder(where),
        record(std::move(stated)),
        database(where / "campaign.db", Database::Mode::read),
        fault_images(database) {
    check_schema(database, (folder / "campaign.db").string());
    check_identity(database, record, (folder / "campaign.toml").string());
    Statement rows(database, "SELECT label, name FROM classes");
    while (rows.step()) class_names[rows.integer(0)] = rows.text(1);
  }

  fs::path opened;
  fs::path folder;
  CampaignRecord record;
  mutable Database database;
  FaultImages fault_images;
  std::map<std::int64_t, std::string> class_names;
};

CampaignReader::CampaignReader(const fs::path& where) {
  require_folder(where);
  bool islands = !is_campaign(where) && holds_campaign(where);
  fs::path folder = islands ? merged_view(where) : where;
  if (!fs::exists(folder / "campaign.toml"))
    bad_input("{}: is not a campaign's folder, for it has no campaign.toml", folder.string());
  if (!fs::exists(folder / "campaign.db")) bad_input("{}: its campaign.db is missing", folder.string());
  if (!fs::is_regular_file(folder / "campaign.db"))
    bad_input("{}: is not a regular file", (folder / "campaign.db").string());
  impl_ = std::make_unique<Impl>(where, folder, CampaignRecord::from_toml(folder / "campaign.toml"));
}

CampaignReader::~CampaignReader() = default;
CampaignReader::CampaignReader(CampaignReader&&) noexcept = default;

const fs::path& CampaignReader::folder() const {
  return impl_->folder;
}

const fs::path& CampaignReader::opened() const {
  return impl_->opened;
}
const CampaignRecord& CampaignReader::record() const {
  return impl_->record;
}

SampleType CampaignReader::type() const {
  return SampleType::parse(impl_->record.input, (folder() / "campaign.toml").string());
}

std::string CampaignReader::class_name(std::int64_t label) const {
  if (label == kNotANumber) return kNotANumberName;
  auto found = impl_->class_names.find(label);
  return found == impl_->class_names.end() || found->second.empty() ? std::to_string(label) : found->second;
}

CampaignCounters CampaignReader::counters() const {
  Statement row(impl_->database, select_batches() + "ORDER BY batches.batch DESC LIMIT 1");
  TimelinePoint last = row.step() ? point_of(row) : TimelinePoint();
  return static_cast<const CampaignCounters&>(last);
}

double CampaignReader::seconds() const {
  Statement row(impl_->database, "SELECT coalesce(max(seconds), 0) FROM clock");
  return row.step() ? row.real(0) : 0;
}

std::string CampaignReader::begun() const {
  Statement row(impl_->database,
                "SELECT strftime('%Y-%m-%d %H:%M UTC', date, 'unixepoch') FROM clock WHERE batch = 0 AND date > 0");
  return row.step() ? row.text(0) : "";
}

std::vector<TimelinePoint> CampaignReader::timeline(std::size_t points) const {
  Statement count(impl_->database, "SELECT count(*) FROM batches");
  auto n = static_cast<std::size_t>(count.step() ? count.integer(0) : 0);
  std::vector<TimelinePoint> result;
  // The k-th of `points` is row k·(n-1)/(points-1): with both ends, evenly spaced.
  Statement rows(impl_->database, select_batches() + "ORDER BY batches.batch");
  bool all = points == 0 || points >= n;
  std::size_t row = 0;
  while (rows.step()) {
    std::size_t due = all || points < 2 ? row : result.size() * (n - 1) / (points - 1);
    if (points == 1 && row + 1 != n) due = n - 1;
    if (row++ == due) result.push_back(point_of(rows));
  }
  return result;
}

std::vector<YieldRecord> CampaignReader::kinds() const {
  return read_yields(impl_->database).kinds;
}

std::vector<YieldRecord> CampaignReader::by_class() const {
  return read_yields(impl_->database).classes;
}

std::vector<ConfusionRecord> CampaignReader::confusion() const {
  std::int64_t n = classes();
  std::vector<ConfusionRecord> result;
  Statement rows(impl_->database,
                 "SELECT label, predicted, count(*) FROM faults GROUP BY label, predicted ORDER BY label, predicted");
  while (rows.step()) {
    ConfusionRecord cell{rows.integer(0), rows.integer(1), rows.integer(2)};
    bool known = cell.predicted == kNotANumber || (cell.predicted >= 0 && cell.predicted < n);
    if (cell.label < 0 || cell.label >= n || !known)
      bad_input("{}: has a fault of a class that the model does not know", folder().string());
    result.push_back(cell);
  }
  return result;
}

std::vector<SeedRecord> CampaignReader::seeds() const {
  std::vector<SeedRecord> result;
  Statement rows(impl_->database,
                 "SELECT " + columns<SeedRecord>("seeds") +
                     ", coalesce(picks.count, 0) FROM seeds LEFT JOIN picks ON picks.id = seeds.id ORDER BY seeds.id");
  while (rows.step()) {
    SeedRecord& seed = result.emplace_back();
    seed.picks = rows.integer(read_row(rows, seed));
  }
  return result;
}

SeedFigures CampaignReader::seed_figures() const {
  SeedFigures result;
  auto number = [&](const char* query) {
    Statement row(impl_->database, query);
    return row.step() ? row.integer(0) : 0;
  };
  result.seeds = number("SELECT count(*) FROM seeds");
  result.tried = number("SELECT count(*) FROM seeds JOIN picks ON picks.id = seeds.id WHERE picks.count > 0");
  std::int64_t wrong = number("SELECT count(*) FROM wrong_seeds");
  result.right = result.seeds - (record().settings.wrong_seeds == "keep" ? wrong : 0);
  result.looked_at = result.right + wrong;
  Statement rows(impl_->database, "SELECT min(change) FROM faults GROUP BY seed ORDER BY 1");
  while (rows.step()) {
    ++result.broken;
    if (rows.real(0) > 0) result.smallest.push_back(rows.real(0));
  }
  return result;
}

std::vector<std::int64_t> CampaignReader::broken_at() const {
  std::vector<std::int64_t> result;
  Statement rows(impl_->database, "SELECT min(iteration) FROM faults GROUP BY seed ORDER BY 1");
  while (rows.step()) result.push_back(rows.integer(0));
  return result;
}

std::string CampaignReader::seed_name(std::int64_t seed) const {
  Statement row(impl_->database, "SELECT source, item FROM seeds WHERE id = ?");
  row.bind(seed);
  if (!row.step()) bad_usage("{}: has no seed {}", folder().string(), seed);
  return row.text(0).empty() ? fmt::format("item {}", row.integer(1)) : row.text(0);
}

double SeedFigures::broken_by(double change) const {
  auto end = std::upper_bound(smallest.begin(), smallest.end(), change);
  return tried > 0 ? static_cast<double>(end - smallest.begin()) / static_cast<double>(tried) : 0;
}

std::vector<WrongSeedRecord> CampaignReader::wrong_seeds() const {
  std::vector<WrongSeedRecord> result;
  Statement rows(impl_->database, "SELECT " + columns<WrongSeedRecord>() + " FROM wrong_seeds ORDER BY item");
  while (rows.step()) read_row(rows, result.emplace_back());
  return result;
}

void CampaignReader::for_each_fault(const FaultFilter& filter,
                                    const std::function<void(const FaultRecord&)>& visit) const {
  const std::string wanted =
      "WHERE id >= ?1 AND (?2 IS NULL OR label = ?2) AND (?3 IS NULL OR predicted = ?3) AND (?4 = 0 OR input != 0) AND "
      "(?5 = 0 OR is_distinct = 1) ";
  const std::string in_turns =
      "SELECT " + columns<FaultRecord>() +
      " FROM (SELECT *, row_number() OVER (PARTITION BY seed ORDER BY is_distinct DESC, id) AS "
      "turn FROM faults " +
      wanted + ") ORDER BY turn, id LIMIT ?6";
  Statement rows(impl_->database, filter.by_turns ? in_turns : select_faults() + wanted + "ORDER BY id LIMIT ?6");
  rows.bind(filter.first, filter.label, filter.predicted, filter.kept_only, filter.distinct_only,
            filter.most > 0 ? filter.most : std::int64_t{-1});
  while (rows.step()) visit(fault_of(rows));
}

std::vector<FaultRecord> CampaignReader::faults(const FaultFilter& filter) const {
  std::vector<FaultRecord> result;
  for_each_fault(filter, [&](const FaultRecord& fault) { result.push_back(fault); });
  return result;
}

FaultRecord CampaignReader::fault(std::int64_t id) const {
  Statement row(impl_->database, select_faults() + "WHERE id = ?");
  row.bind(id);
  if (!row.step()) bad_usage("{}: has no fault {}", folder().string(), id);
  return fault_of(row);
}

void CampaignReader::for_each_input(const std::function<void(const InputRecord&)>& visit) const {
  Statement rows(impl_->database, select_inputs() + "ORDER BY inputs.id");
  while (rows.step()) visit(input_of(rows));
}

InputRecord CampaignReader::input(std::int64_t id) const {
  Statement row(impl_->database, select_inputs() + "WHERE inputs.id = ?");
  row.bind(id);
  if (!row.step()) bad_usage("{}: has no kept mutant {}", folder().string(), id);
  return input_of(row);
}

Lineage CampaignReader::lineage(const InputRecord& input) const {
  Lineage result{input.seed, {input.rule}, {input.id}};
  Statement row(impl_->database, "SELECT parent, rule FROM inputs WHERE id = ?");
  std::int64_t parent = input.parent;
  while (parent != input.seed) {
    row.reset();
    row.bind(parent);
    // A parent is always older than its child, so this ends.
    if (!row.step() || row.integer(0) >= parent)
      bad_input("{}: the lineage of kept mutant {} is broken", folder().string(), input.id);
    result.inputs.push_back(parent);
    result.rules.push_back(row.text(1));
    parent = row.integer(0);
  }
  std::reverse(result.rules.begin(), result.rules.end());
  std::reverse(result.inputs.begin(), result.inputs.end());
  return result;
}

Lineage CampaignReader::lineage(const FaultRecord& fault) const {
  if (fault.kept()) return lineage(input(fault.input));
  Lineage result{fault.seed, {}, {}};
  if (fault.parent != fault.seed) result = lineage(input(fault.parent));
  result.rules.push_back(fault.rule);
  return result;
}

at::Tensor CampaignReader::image(std::int64_t id) const {
  Statement row(impl_->database,
                "SELECT image, sha256 FROM inputs WHERE id = ?1 UNION ALL SELECT image, sha256 FROM seeds WHERE id = "
                "?1");
  row.bind(id);
  if (!row.step()) bad_usage("{}: has no seed or kept mutant {}", folder().string(), id);
  QuietDecoders quiet;
  return verified_input(row.blob(0), type(), row.text(1), fmt::format("{}, input {}", folder().string(), id));
}

at::Tensor CampaignReader::image(const FaultRecord& fault) const {
  QuietDecoders quiet;
  std::optional<std::string> stored = impl_->fault_images.find(fault);
  return verified_input(stored ? *stored : fault_bytes(folder(), fault, fault.file, type()), type(), fault.sha256,
                        (folder() / fault.file).string());
}

std::map<std::string, double> figures_of(const MutantRecord& mutant) {
  std::map<std::string, double> result;
  auto object = parse_json<nlohmann::json>(mutant.figures);
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) result.emplace(name, value.get<double>());
  }
  return result;
}

}  // namespace galvani
