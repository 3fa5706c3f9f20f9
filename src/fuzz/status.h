// What a campaign tells its listeners, kept up to date.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "fuzz/batch_record.h"
#include "fuzz/shared_store.h"
#include "fuzz/state.h"
#include "galvani/fuzz/listener.h"

namespace galvani {

class StatusKeeper {
 public:
  // At the beginning of a session. `record` outlives this.
  void begin(const std::filesystem::path& folder, const CampaignRecord& record, const Budget& budget, bool resumed,
             SharedStore& store);
  // `seconds`: of work, in all sessions and in this one.
  void update(const CampaignState& state, double seconds, double session_seconds);
  // A batch that was done now and took so many seconds, with so many valid candidates.
  void note(const BatchRecord& batch, double batch_seconds, std::int64_t batch_valid, double seconds);
  void enter(CampaignStage stage) { status_.stage = stage; }

  const CampaignStatus& status() const { return status_; }

 private:
  using Clock = std::chrono::steady_clock;

  void tell_past(const std::filesystem::path& folder, Store& store);
  void note_point(const TimelinePoint& point);

  CampaignStatus status_;
  std::optional<Clock::time_point> kept_time_, fault_time_;
};

}  // namespace galvani
