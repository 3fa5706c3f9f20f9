#include "galvani/fuzz/islands.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "fuzz/news.h"
#include "fuzz/rows.h"
#include "galvani/base/archive.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"

namespace galvani {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "island-";

// What one group of processes knows of its islands, on its way to the others.
struct Told {
  std::int64_t number = 0;
  IslandStatus status;
  News news;
};

void put(ArchiveWriter& out, const Told& told) {
  out.put(told.number);
  put_fields(out, told.status.counters);
  out.put(told.status.stored);
  out.put(told.status.reached);
  out.put(told.status.idle);
  put_news(out, told.news);
}

Told get(ArchiveReader& in) {
  Told told;
  told.number = in.get<std::int64_t>();
  get_fields(in, told.status.counters);
  told.status.stored = in.get<std::int64_t>();
  told.status.reached = in.get_text();
  told.status.idle = in.get<bool>();
  told.news = get_news(in);
  return told;
}

class Archipelago {
 public:
  Archipelago(fs::path run, std::int64_t count, const CampaignSettings& settings, const Budget& budget)
      : run_(std::move(run)),
        count_(count),
        settings_(settings),
        budget_(budget),
        interval_(exchange_interval(settings)),
        parts_(static_cast<int>(count)) {}

  std::string work(const CampaignSubject& subject, const std::function<void(const std::vector<IslandStatus>&)>& tell) {
    std::vector<Told> known = meet([&] { open(subject); }, 0);
    std::string reason;
    if (interval_ == 0) {
      known = meet([&] { each([&](Campaign& island) { island.work(0); }); }, 0);
      tell(statuses(known));
      reason = known.front().status.reached;
    } else {
      reason = work_in_rounds(std::move(known), tell);
    }
    meet([&] { each([&](Campaign& island) { island.end(reason); }); }, 0);
    return reason;
  }

 private:
  std::string work_in_rounds(std::vector<Told> known,
                             const std::function<void(const std::vector<IslandStatus>&)>& tell) {
    // Whoever is ahead, because the others were killed earlier or have older snapshots, waits for them.
    std::int64_t round = known.front().status.counters.iterations / interval_;
    std::int64_t furthest = 0;
    for (const Told& one : known) {
      round = std::min(round, one.status.counters.iterations / interval_);
      furthest = std::max(furthest, one.status.stored);
    }
    std::int64_t last = budget_.iterations > 0 ? std::max(budget_.iterations, furthest) : 0;
    known = meet([] {}, round);
    while (true) {
      std::int64_t done = round * interval_;
      // What is stored of a round is done to its end before anybody may stop.
      std::string reason = done >= furthest ? why_stop(known) : "";
      if (!reason.empty()) return reason;
      std::int64_t until = (round + 1) * interval_;
      if (last > 0) until = std::min(until, last);
      known = meet(
          [&] {
            hear(known, done);
            each([&](Campaign& island) { island.work(until); });
          },
          round + 1);
      tell(statuses(known));
      if (last > 0 && until == last) return fmt::format("{} iterations are done", last);
      ++round;
    }
  }

  // The first island that has reached the budget ends all of them; one with nothing left to pick waits for the others.
  static std::string why_stop(const std::vector<Told>& known) {
    bool all_idle = true;
    for (const Told& one : known) {
      if (!one.status.idle && !one.status.reached.empty()) return one.status.reached;
      all_idle = all_idle && one.status.idle;
    }
    return all_idle ? known.front().status.reached : "";
  }

  // `work` on the islands of this group, then what all know of all of them: with what they found in a round.
  std::vector<Told> meet(const std::function<void()>& work, std::int64_t round) {
    std::vector<std::string> texts = parts_.run([&] {
      work();
      ArchiveWriter out;
      each([&](std::int64_t number, Campaign& island) {
        Told told{number, {island.counters(), island.stored_iterations(), island.reached(), island.idle()}, {}};
        if (leads() && round > 0) told.news = island.news((round - 1) * interval_, round * interval_);
        put(out, told);
      });
      return out.bytes();
    });
    std::vector<Told> all;
    for (const std::string& text : texts) {
      ArchiveReader in(text, "another island");
      while (!in.rest().empty()) all.push_back(get(in));
    }
    std::sort(all.begin(), all.end(), [](const Told& a, const Told& b) { return a.number < b.number; });
    return all;
  }

  void open(const CampaignSubject& subject) {
    CampaignOptions options;
    std::int64_t own = (count_ + parts_.count() - 1) / parts_.count();
    options.cache_bytes = std::max<std::int64_t>(options.cache_bytes / own, 1);
    for (std::int64_t number = 1; number <= count_; ++number) {
      if ((number - 1) % parts_.count() != parts_.own()) continue;
      CampaignSettings settings = settings_;
      settings.island = Island{number, count_}.str();
      auto island = std::make_unique<Campaign>(island_folder(run_, number), settings, subject, options);
      island->begin(budget_, {});
      own_.emplace(number, std::move(island));
    }
  }

  // Every island hears the others in the order of their numbers.
  void hear(const std::vector<Told>& known, std::int64_t iterations) {
    each([&](std::int64_t number, Campaign& island) {
      std::vector<News> told;
      for (const Told& one : known) {
        if (one.number != number) told.push_back(one.news);
      }
      island.hear(std::move(told), iterations);
    });
  }

  void each(const std::function<void(std::int64_t, Campaign&)>& work) {
    for (auto& [number, island] : own_) work(number, *island);
  }
  void each(const std::function<void(Campaign&)>& work) {
    for (auto& [number, island] : own_) work(*island);
  }

  static std::vector<IslandStatus> statuses(const std::vector<Told>& known) {
    std::vector<IslandStatus> result;
    for (const Told& one : known) result.push_back(one.status);
    return result;
  }

  fs::path run_;
  std::int64_t count_;
  CampaignSettings settings_;
  Budget budget_;
  std::int64_t interval_;
  CrewParts parts_;
  std::map<std::int64_t, std::unique_ptr<Campaign>> own_;
};

}  // namespace

fs::path island_folder(const fs::path& run, std::int64_t number) {
  return run / fmt::format("{}{}", kPrefix, number);
}

std::vector<fs::path> islands_in(const fs::path& run) {
  std::map<std::int64_t, fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, error)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(kPrefix, 0) != 0 || !is_campaign(entry.path())) continue;
    std::int64_t number = 0;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data() + kPrefix.size(), end, number).ptr == end) found.emplace(number, entry.path());
  }
  std::vector<fs::path> result;
  for (auto& [number, path] : found) result.push_back(path);
  return result;
}

std::string run_islands(const fs::path& run, std::int64_t count, const CampaignSettings& settings,
                        const CampaignSubject& subject, const Budget& budget,
                        const std::function<void(const std::vector<IslandStatus>&)>& tell) {
  parse_island(Island{1, count}.str());
  if (leads() && is_campaign(run))
    bad_usage("{}: holds one campaign, not the islands of a run; choose another folder with -o", run.string());
  return Archipelago(run, count, settings, budget).work(subject, [&](const std::vector<IslandStatus>& islands) {
    if (leads()) tell(islands);
  });
}

}  // namespace galvani
