// Campaigns side by side: groups of repeated runs, tests between them, growth curves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "galvani/fuzz/summary.h"
#include "galvani/quality/statistics.h"

namespace galvani {

enum class GroupBy { guide, generator, model, settings };
GroupBy parse_group_by(const std::string& text);  // usage error if it is none

struct ComparedRun {
  std::filesystem::path folder;
  CampaignRecord record;
  CampaignSummary summary;
  std::vector<TimelinePoint> timeline;
  std::string found;  // hash of how many mutants were judged and of every fault; empty: there is no fault
  std::size_t group = 0;
};

// The figures that are compared.
const std::vector<CampaignFigure>& measures();

struct MeasuredGroup {
  std::vector<double> values;  // one a run in which the measure is defined
  double mean = 0;
  double deviation = 0;
};

struct Group {
  std::string name;
  std::vector<std::size_t> runs;
  std::vector<MeasuredGroup> measured;  // one a measure
};

struct PairTest {
  std::size_t measure = 0;
  std::size_t a = 0;  // groups
  std::size_t b = 0;
  MannWhitney test;
  double corrected_p = 1;  // Holm, over the pairs of one measure
  double a12 = 0.5;
};

struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<Group> groups;       // in the order they first occur
  std::vector<PairTest> tests;     // measure by measure; coverage only where the guide is the same
  std::vector<std::string> notes;  // what a reader must know
};

// Usage error for fewer than two runs or a folder that is named twice.
Comparison compare_runs(const std::vector<std::filesystem::path>& folders, GroupBy by);

// runs, groups, and of each measure <name>-p, the smallest corrected p of its pairs, and <name>-a12, that of the first
// group against the second; not a number where there was no test.
Figures figures_of(const Comparison& comparison);

// Means over the runs of each group, as far as all of them go: faults over iterations, over time, coverage.
std::string comparison_svg(const Comparison& comparison);

}  // namespace galvani
