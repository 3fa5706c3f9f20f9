// The numbers the papers compare: faults, RFT, FRE, classes, impartiality.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/base/json.h"
#include "galvani/fuzz/reader.h"

namespace galvani {

// Pielou's evenness of how often each class occurs: entropy / log(classes), from 0 to 1. 0 if nothing occurs.
double pielou_evenness(const std::vector<std::int64_t>& counts);

struct CampaignSummary {
  SeedFigures seeds;
  CampaignCounters counters;
  double seconds = 0;
  double rft = 0;                 // kept faults / kept, as the papers count
  double rft_all = 0;             // faults / valid mutants
  double fre = 0;                 // seconds a kept fault; 0 if there is none
  double fre_all = 0;             // seconds a fault
  std::int64_t classes = 0;       // true classes that faults were found in
  std::int64_t predicted = 0;     // classes they were taken for
  double impartiality = 0;        // OI: evenness of the classes faults were taken for
  std::int64_t transitions = 0;   // different pairs of true class and verdict
  std::int64_t not_a_number = 0;  // faults that were taken for no class
};
CampaignSummary summarise(const CampaignReader& reader);

// "lenet5.onnx gets 290 of 300 inputs right (96.7%); preprocessing range 0..1, ... (assumed: the file does not say)":
// what every figure of a campaign rests on.
std::string base_text(const CampaignRecord& record, const SeedFigures& seeds);
// "50 of 50 tried seeds broke (100%), 237 of 287 were not tried"
std::string seeds_text(const SeedFigures& seeds);
// How strong a change is, in the steps people are shown.
const std::vector<double>& change_steps();
// "1% breaks 2%, 2% breaks 10%, ...", of the tried seeds; empty: no change is known.
std::string changes_text(const SeedFigures& seeds);

// A list of objects.
Json yields_json(const std::vector<YieldRecord>& yields);

// One number of a summary.
struct CampaignFigure {
  const char* name;   // as conditions and options have it
  const char* title;  // of a column that compares campaigns; null: there is none
  double (*of)(const CampaignSummary&);
  // It counts in a campaign. One that does not is left out of means and tests, such as the time per fault where there
  // is none.
  bool (*defined)(const CampaignSummary&);
  bool of_guide = false;  // campaigns with different guides cannot be compared by it
};
const std::vector<CampaignFigure>& campaign_figures();
Figures figures_of(const CampaignSummary& summary);  // all of them

}  // namespace galvani
