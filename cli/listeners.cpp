#include "listeners.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "campaign_flags.h"
#include "galvani/base/json.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/coverage/criterion.h"
#include "galvani/fuzz/summary.h"

namespace galvani::cli {
namespace {

using Clock = std::chrono::steady_clock;

class ProgressListener : public Listener {
 public:
  void started(const CampaignStatus& status) override {
    if (status.repeat_until > status.counters.batches) {
      progress_.emplace("repeating", status.repeat_until - status.counters.batches, "batches");
      return;
    }
    begin(status);
  }

  void batch(const CampaignStatus& status, const std::vector<FaultRecord>&) override {
    if (status.stage == CampaignStage::repeating) {
      progress_->advance();
      return;
    }
    if (!running_) begin(status);
    progress_->note(fmt::format("{} of {} broke, {}, {} kept, coverage {}, corpus {}",
                                format_count(status.broken_seeds), counted(status.tried_seeds, "tried seed"),
                                counted(status.counters.faults, "fault"), format_count(status.counters.kept),
                                coverage_text({status.counters.covered, status.counters.coverable}),
                                format_count(status.corpus)));
    progress_->advance(status.counters.mutants - mutants_);
    mutants_ = status.counters.mutants;
  }

  void finished(const CampaignStatus&, const std::string&) override {
    if (progress_) progress_->finish();
  }

 private:
  void begin(const CampaignStatus& status) {
    running_ = true;
    mutants_ =
        status.stage == CampaignStage::running ? status.counters.mutants - per_batch(status) : status.counters.mutants;
    std::int64_t batches = 0;
    if (status.budget.iterations > 0) {
      std::int64_t picks = status.record->settings.batch;
      batches = (status.budget.iterations + picks - 1) / picks;
    }
    std::int64_t total = batches > 0 ? batches * per_batch(status) - mutants_ : 0;
    progress_.emplace("fuzzing", std::max<std::int64_t>(0, total), "mutants");
  }
  static std::int64_t per_batch(const CampaignStatus& status) {
    return status.record->settings.batch * status.record->settings.energy;
  }

  std::optional<Progress> progress_;
  bool running_ = false;
  std::int64_t mutants_ = 0;
};

Json status_json(const CampaignStatus& status) {
  Json j = {{"not_a_number", status.not_a_number},
            {"seeds", status.seeds},
            {"tried_seeds", status.tried_seeds},
            {"broken_seeds", status.broken_seeds},
            {"corpus", status.corpus},
            {"seconds", status.seconds},
            {"rate", status.rate}};
  add_counters(status.counters, j);
  return j;
}

Json fault_json(const FaultRecord& fault) {
  return {
      {"id", fault.id},     {"label", fault.label}, {"predicted", fault.predicted}, {"confidence", fault.confidence},
      {"rule", fault.rule}, {"file", fault.file}};
}

class JsonListener : public Listener {
 public:
  explicit JsonListener(const Common& common) : common_(common) {}

  void started(const CampaignStatus& status) override {
    Json j = status_json(status);
    j["event"] = "started";
    j["folder"] = status.folder;
    j["resumed"] = status.resumed;
    j["wrong_seeds"] = status.wrong_seeds;
    j["guide"] = status.record->settings.guide;
    print(j);
  }

  void batch(const CampaignStatus& status, const std::vector<FaultRecord>& faults) override {
    if (common_.taker == nullptr && Clock::now() - printed_ < std::chrono::seconds(1)) return;
    Json j = status_json(status);
    j["event"] = status.stage == CampaignStage::repeating ? "repeating" : "status";
    j["recent"] = Json::array();
    for (const FaultRecord& fault : status.recent) j["recent"].push_back(fault_json(fault));
    if (common_.taker != nullptr) {
      j["faults_now"] = Json::array();
      for (const FaultRecord& fault : faults) j["faults_now"].push_back(fault_json(fault));
    }
    print(j);
  }

  void finished(const CampaignStatus& status, const std::string& reason) override {
    Json j = status_json(status);
    j["event"] = "finished";
    j["reason"] = reason;
    j["mutators"] = yields_json(status.kinds);
    j["classes"] = yields_json(status.classes);
    print(j);
  }

 private:
  void print(const Json& j) {
    printed_ = Clock::now();
    common_.tell(j);
  }

  const Common& common_;
  Clock::time_point printed_ = Clock::now();
};

}  // namespace

std::unique_ptr<Listener> make_progress_listener() {
  return std::make_unique<ProgressListener>();
}

std::unique_ptr<Listener> make_json_listener(const Common& common) {
  return std::make_unique<JsonListener>(common);
}

}  // namespace galvani::cli
