#include "galvani/report/faults.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "campaign_flags.h"
#include "galvani/base/error.h"
#include "galvani/base/json.h"
#include "galvani/base/log.h"
#include "galvani/base/options.h"
#include "galvani/base/progress.h"
#include "galvani/base/table.h"
#include "galvani/base/text.h"
#include "galvani/model/evaluate.h"
#include "galvani/report/replay.h"
#include "galvani/report/shrink.h"
#include "verb.h"

namespace galvani::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kGroupsShown = 20;
constexpr std::size_t kClustersShown = 30;

struct FaultsFlags {
  std::string folder;
  std::string label;
  std::string predicted;
  FaultQuery query;
  std::int64_t most = 50;
  bool cluster = false;
  double radius = 0.7;
  bool minimise = false;
  bool keep_class = false;
};

// A class by its name or its number.
std::optional<std::int64_t> class_of(const CampaignReader& reader, const char* option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  for (std::int64_t c = 0; c < reader.classes(); ++c) {
    if (reader.class_name(c) == text) return c;
  }
  std::int64_t number = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number >= reader.classes())
    bad_usage("{}: '{}' is neither the name of a class nor a number below {}", option, printable(text),
              reader.classes());
  return number;
}

// What a fault was taken for: a class, or not a number.
std::optional<std::int64_t> verdict_of(const CampaignReader& reader, const char* option, const std::string& text) {
  if (text == kNotANumberName || text == "nan") return kNotANumber;
  return class_of(reader, option, text);
}

std::string pair_text(const CampaignReader& reader, std::int64_t label, std::int64_t predicted) {
  return fmt::format("{} → {}", printable(reader.class_name(label), 30), printable(reader.class_name(predicted), 30));
}

std::string lineage_text(const std::vector<std::string>& rules) {
  return fmt::format("{}", fmt::join(rules, " → "));
}

Json fault_json(const CampaignReader& reader, const FaultRecord& fault) {
  return {{"id", fault.id},
          {"true", fault.label},
          {"predicted", fault.predicted},
          {"predicted_name", reader.class_name(fault.predicted)},
          {"confidence", fault.confidence},
          {"kept", fault.kept()},
          {"distinct", fault.distinct},
          {"seed", fault.seed},
          {"from", reader.seed_name(fault.seed)},
          {"change", fault.change},
          {"lineage", reader.lineage(fault).rules},
          {"file", fault.file},
          {"remarks", remarks_on(fault)}};
}

std::vector<FaultRecord> matches(const CampaignReader& reader, FaultQuery query, std::int64_t most) {
  query.filter.most = most;
  query.filter.by_turns = most > 0;
  std::vector<FaultRecord> result;
  for_each_match(reader, query, [&](const FaultRecord& fault) { result.push_back(fault); });
  return result;
}

void list(const Common& common, const FaultsFlags& flags, const CampaignReader& reader) {
  std::vector<FaultGroup> groups = group_faults(reader, flags.query);
  std::int64_t all = 0;
  for (const FaultGroup& group : groups) all += group.faults;
  std::vector<FaultRecord> faults = matches(reader, flags.query, flags.most);
  if (common.json) {
    Json j = {{"folder", flags.folder}, {"matching", all}, {"groups", Json::array()}, {"faults", Json::array()}};
    for (const FaultGroup& g : groups)
      j["groups"].push_back({{"true", g.label},
                             {"predicted", g.predicted},
                             {"predicted_name", reader.class_name(g.predicted)},
                             {"faults", g.faults},
                             {"distinct", g.distinct},
                             {"kept", g.kept},
                             {"confidence", g.confidence},
                             {"mutator", g.mutator}});
    for (const FaultRecord& fault : faults) j["faults"].push_back(fault_json(reader, fault));
    common.give(j);
    return;
  }
  if (all == 0) {
    say("no fault matches\n");
    return;
  }
  Table table({"true → predicted", ">faults", ">distinct", ">kept", ">confidence", "most often by"});
  for (std::size_t i = 0; i < std::min(groups.size(), kGroupsShown); ++i) {
    const FaultGroup& g = groups[i];
    table.add({pair_text(reader, g.label, g.predicted), format_count(g.faults), format_count(g.distinct),
               format_count(g.kept), fmt::format("{:.1f}%", g.confidence * 100), g.mutator});
  }
  say("{}", table.str());
  if (groups.size() > kGroupsShown) say("and {} more pairs\n", groups.size() - kGroupsShown);
  Table each({">fault", "from", reader.record().by_reference() ? "right → answer" : "true → predicted", ">confidence",
              ">change", "", "lineage", "file"});
  for (const FaultRecord& fault : faults)
    each.add({std::to_string(fault.id), printable(reader.seed_name(fault.seed), 40), verdict_text(reader, fault),
              fmt::format("{:.1f}%", fault.confidence * 100),
              fault.change > 0 ? fmt::format("{:.1f}%", fault.change * 100) : "",
              std::string(fault.kept() ? "kept" : "") + (fault.distinct ? "" : " again"),
              printable(lineage_text(reader.lineage(fault).rules), 70), fault.file});
  say("\n{}", each.str());
  if (static_cast<std::int64_t>(faults.size()) < all)
    say("{} of {} are listed, one of every seed first; --most 0 lists all\n", format_count(flags.most),
        format_count(all));
}

void cluster(const Common& common, const FaultsFlags& flags, const CampaignReader& reader) {
  std::vector<FaultRecord> faults = matches(reader, flags.query, 0);
  std::unique_ptr<Network> network = load_campaign_model(reader.record());
  std::string tap;
  at::Tensor features = fault_features(reader, *network, faults, tap);
  double distance = flags.radius * median_distance(features);
  std::vector<std::pair<std::int64_t, std::int64_t>> groups;
  groups.reserve(faults.size());
  for (const FaultRecord& fault : faults) groups.emplace_back(fault.label, fault.predicted);
  std::vector<FaultCluster> clusters = cluster_features(features, groups, distance);
  if (common.json) {
    Json j = {{"folder", flags.folder},
              {"matching", faults.size()},
              {"tap", tap},
              {"distance", distance},
              {"clusters", Json::array()}};
    for (const FaultCluster& c : clusters) {
      Json row = {{"true", c.label},
                  {"predicted", c.predicted},
                  {"size", c.members.size()},
                  {"radius", c.radius},
                  {"representative", fault_json(reader, faults[c.representative])},
                  {"faults", Json::array()}};
      for (std::size_t member : c.members) row["faults"].push_back(faults[member].id);
      j["clusters"].push_back(row);
    }
    common.give(j);
    return;
  }
  say("{} in {}, by what {} sees in them (cosine geometry, within {:.3g})\n\n",
      counted(static_cast<std::int64_t>(faults.size()), "fault"),
      counted(static_cast<std::int64_t>(clusters.size()), "cluster"), tap, distance);
  if (clusters.empty()) return;
  Table table({"true → predicted", ">faults", ">radius", ">typical", "lineage", "file"});
  for (std::size_t i = 0; i < std::min(clusters.size(), kClustersShown); ++i) {
    const FaultCluster& c = clusters[i];
    const FaultRecord& typical = faults[c.representative];
    table.add({pair_text(reader, c.label, c.predicted), std::to_string(c.members.size()),
               fmt::format("{:.3f}", c.radius), std::to_string(typical.id),
               printable(lineage_text(reader.lineage(typical).rules), 60), typical.file});
  }
  say("{}", table.str());
  if (clusters.size() > kClustersShown) say("and {} smaller ones (--json has all)\n", clusters.size() - kClustersShown);
}

fs::path minimised_folder(const FaultsFlags& flags) {
  fs::path folder = fs::path(flags.folder) / "minimised";
  // A campaign may come from a stranger, who must not choose what is written.
  std::error_code error;
  if (fs::is_symlink(folder, error))
    bad_input("{}: is a symbolic link, which no campaign makes; remove it", folder.string());
  return folder;
}

void minimise(const Common& common, const FaultsFlags& flags, const CampaignReader& reader) {
  std::vector<FaultRecord> faults = matches(reader, flags.query, flags.most);
  std::unique_ptr<Network> network = load_campaign_model(reader.record());
  FaultShrinker shrinker(reader, *network, {flags.keep_class});
  std::vector<ShrunkFault> results;
  double steps = 0, steps_after = 0, pixels = 0, pixels_after = 0;
  std::int64_t not_repeatable = 0, verdicts = 0;
  {
    Progress progress("minimising", static_cast<std::int64_t>(faults.size()), "faults");
    for (const FaultRecord& fault : faults) {
      results.push_back(shrinker.shrink(fault));
      const ShrunkFault& r = results.back();
      steps += static_cast<double>(r.rules_before.size());
      steps_after += static_cast<double>(r.rules.size());
      pixels += static_cast<double>(r.before.pixels);
      pixels_after += static_cast<double>(r.after.pixels);
      not_repeatable += r.repeatable ? 0 : 1;
      verdicts += r.verdicts;
      progress.advance();
    }
  }
  fs::path folder = minimised_folder(flags);
  write_shrunk(folder, reader, results);
  double n = std::max<double>(1, static_cast<double>(results.size()));
  if (not_repeatable > 0)
    log::warn("{} faults are not what their lineage gives, so only their pixels were looked at", not_repeatable);
  if (common.json) {
    Json j = {{"folder", folder.string()}, {"faults", Json::array()},
              {"mean_steps", steps / n},   {"mean_minimised_steps", steps_after / n},
              {"mean_pixels", pixels / n}, {"mean_minimised_pixels", pixels_after / n},
              {"verdicts", verdicts}};
    for (const ShrunkFault& r : results)
      j["faults"].push_back({{"id", r.fault.id},
                             {"true", r.fault.label},
                             {"predicted", r.fault.predicted},
                             {"minimised_predicted", r.predicted},
                             {"rules", r.rules_before},
                             {"minimised_rules", r.rules},
                             {"pixels", r.before.pixels},
                             {"minimised_pixels", r.after.pixels},
                             {"largest", r.before.largest},
                             {"minimised_largest", r.after.largest}});
    common.give(j);
    return;
  }
  say("{}: from {:.2f} to {:.2f} steps, from {:.0f} to {:.1f} changed {} on average ({} verdicts)\n"
      "in {}: minimised.csv, sheet.png and the files\n",
      counted(static_cast<std::int64_t>(results.size()), "fault"), steps / n, steps_after / n, pixels / n,
      pixels_after / n, reader.type().kind == SampleKind::image ? "pixels" : "samples", format_count(verdicts),
      folder.string());
  FaultQuery all = flags.query;
  std::int64_t matching = 0;
  for (const FaultGroup& group : group_faults(reader, all)) matching += group.faults;
  if (static_cast<std::int64_t>(results.size()) < matching)
    say("these are {} of {} that match; --most 0 takes all\n", results.size(), format_count(matching));
}

// Usage error if no step of the campaign is called that.
void check_kind(const CampaignReader& reader, const std::string& name) {
  std::vector<std::string> known;
  for (const YieldRecord& kind : reader.kinds()) known.push_back(kind.name);
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string near = nearest_word(name, known);
  bad_usage("{}: has no step called '{}'; {}", reader.folder().string(), printable(name),
            near.empty() ? "there are " + fmt::format("{}", fmt::join(known, ", ")) : "did you mean '" + near + "'?");
}

void run(const Common& common, FaultsFlags& flags) {
  if (flags.cluster && flags.minimise) bad_usage("choose one of --cluster and --minimise");
  if (flags.keep_class && !flags.minimise) bad_usage("--keep-class belongs to --minimise");
  CampaignReader reader(flags.folder);
  check_kind(reader, flags.query.mutator);
  flags.query.filter.label = class_of(reader, "--true", flags.label);
  flags.query.filter.predicted = verdict_of(reader, "--pred", flags.predicted);
  if (flags.cluster) {
    cluster(common, flags, reader);
  } else if (flags.minimise) {
    minimise(common, flags, reader);
  } else {
    list(common, flags, reader);
  }
}

}  // namespace

void add_faults_verb(Verb& app, Common& common) {
  auto flags = std::make_shared<FaultsFlags>();
  Verb& verb = make_verb(app, common, "faults", "list, group, cluster and minimise the faults of a campaign",
                         "  galvani faults run1\n"
                         "  galvani faults run1 --true 3 --pred 5 --mutator blur --min-confidence 0.9\n"
                         "  galvani faults run1 --distinct --cluster\n"
                         "  galvani faults run1 --kept --minimise --most 100      writes run1/minimised/");
  runs_models(verb, common, [flags] {
    return flags->minimise ? Confinement{{minimised_folder(*flags)}, {}} : Confinement();
  });
  verb.add_option("run", flags->folder, "the campaign's folder").required();
  verb.add_option("--true", flags->label, "of this class: its name or number");
  verb.add_option("--pred", flags->predicted, "taken for this class, or nan: scores that are not a number");
  verb.add_option("--mutator", flags->query.mutator, "whose last step is of this mutator");
  verb.add_flag("--kept", flags->query.filter.kept_only, "that the guide kept");
  verb.add_flag("--distinct", flags->query.filter.distinct_only, "every image once");
  verb.add_option("--min-confidence", flags->query.min_confidence, "of the wrong verdict, from 0 to 1")
      .check(Range(0.0, 1.0));
  verb.add_option("--most", flags->most, "how many to list or minimise; 0: all")
      .check(Range(std::int64_t{0}, std::int64_t{1} << 50))
      .show_default();
  verb.add_flag("--cluster", flags->cluster, "group what looks alike to the network, pair by pair");
  verb.add_option("--radius", flags->radius, "of a cluster, as a share of the median distance between faults")
      .check(Range(0.0, 10.0))
      .show_default();
  verb.add_flag("--minimise", flags->minimise, "find the shortest lineage and the smallest change that still fail");
  verb.add_flag("--keep-class", flags->keep_class, "as long as it is taken for the same class");
  verb.callback([&common, flags] { run(common, *flags); });
}

}  // namespace galvani::cli
