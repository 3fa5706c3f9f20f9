// A network made better with tests that it failed, and what that did to it: retraining with found tests, training
// against an attack, and the Revisiting study's refined loop, each beside a control that has the same budget.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "galvani/base/gate.h"
#include "galvani/base/options.h"
#include "galvani/model/train.h"
#include "galvani/repair/tests.h"
#include "galvani/trace/trace.h"

namespace galvani {

// Algorithm 1 of the Revisiting study: the training data in parts, one after the other mutated; what the network of the
// moment gets wrong is kept, if it covers something that all data so far do not, or if it does not.
struct RepairLoop {
  std::int64_t parts = 0;                   // k; 0: there is no loop
  std::int64_t per_image = 1;               // candidates of an image
  std::int64_t most = 0;                    // kept in a round; 0: all
  std::string keep = "coverage-improving";  // or coverage-remaining, or all
  std::string criterion = "nc";
  std::string generator = "mutate";
  std::string taps = "default";
  NeuronUnit unit = NeuronUnit::channel;

  static RepairLoop parse(const std::string& text);  // "k=5,per_image=2"
};

struct RepairOptions {
  // How it is retrained; epochs below 0: as many as the number of tests asks for. Of the checkpoint's path the other
  // trainings have theirs (repair_checkpoints); `apart`, `share` and `perturbation` are set here.
  TrainOptions training;
  double mix = 0.3;  // share of tests in a batch; 0: all data and all tests shuffled together
  // Clean accuracy that may be lost. The retrained weights are blended with the original ones as far as that takes
  // (Wortsman et al. 2022, WiSE-FT), judged on a fifth of the clean data that is then not measured on. 1: no blending.
  // Below 0: 0.01, or 1 against an attack, of which half is worth little, and with the loop, whose ways are compared.
  double clean_loss = -1;
  double held_out = 0.3;    // share of the tests' seeds
  std::string adversarial;  // a spec of adversaries(); empty: none
  RepairLoop loop;
  std::vector<std::string> controls = {"clean"};  // retraining on nothing but clean data; noise: on noisy ones
  std::string attacks;                            // specs of attacks to measure with, separated by commas
  std::int64_t attacked = 1000;                   // of the clean data

  std::vector<Spec> attack_specs() const;
  double allowed_clean_loss() const;
};

// "clean,noise", or "none". Usage error for a control that does not exist.
std::vector<std::string> parse_controls(const std::string& text);

struct RepairData {
  Dataset train;
  Dataset clean;                  // to measure on
  std::vector<FoundTests> tests;  // of each source
};

// What a network got right of a set.
struct Verdicts {
  at::Tensor predicted;  // [N] int64; of attacked inputs, after the attack
  at::Tensor right;      // [N] bool
  double accuracy() const;
};

enum class SetKind { clean, held_out, trained, attacked };
const char* to_string(SetKind kind);

// Inputs that every network is measured on.
struct MeasuredSet {
  SetKind kind;
  std::string name;                // where they came from, or the attack
  std::vector<Verdicts> verdicts;  // of each network
  std::int64_t inputs() const;
};

// A round of the loop.
struct RepairRound {
  std::int64_t candidates = 0;
  std::int64_t wrong = 0;      // of them
  std::int64_t improving = 0;  // of those
  std::int64_t kept = 0;
  double coverage_before = 0;  // of the training data so far, in the network the round began with
  double coverage_after = 0;   // with what was kept
  double clean = 0;            // accuracy of the network the round ended with
  double held_out = 0;
};

// What became of the clean data of a class.
struct ClassChange {
  std::int64_t inputs = 0;
  std::int64_t mended = 0;
  std::int64_t broken = 0;
};

struct RepairResult {
  std::unique_ptr<Network> network;
  std::vector<std::string> networks;  // "before", the controls, "after": the columns
  std::vector<double> blends;         // of each, how much of its weights is retrained
  std::int64_t blended_on = 0;        // clean inputs that this was judged by
  Dataset clean;                      // without the seeds of what was trained on
  std::int64_t clean_left_out = 0;
  std::vector<std::int64_t> clean_items;  // which rows of the data given these are; empty: all
  std::int64_t trained_tests = 0;
  std::int64_t trained_seeds = 0;
  std::int64_t epochs = 0;  // of the last training
  std::vector<MeasuredSet> sets;
  std::vector<RepairRound> rounds;
  double seconds = 0;

  // Over all sets of a kind, by a network: the share that is right; NaN if there are none.
  double accuracy(SetKind kind, std::size_t which) const;
  std::size_t after() const { return networks.size() - 1; }
  // Of the clean data: rows that were right before and are wrong after, and the other way round.
  std::vector<std::int64_t> broken() const;
  std::vector<std::int64_t> mended() const;
  std::vector<ClassChange> by_class() const;
  std::string input_name(std::int64_t row) const;  // of the clean data: its file, or "item 17"
};

// News of a training: "repair", "round 2", "control clean".
using RepairListener = std::function<void(const std::string& stage, const EpochReport& report)>;

// The network given stays as it is. With checkpoints, it goes on from where it was interrupted; they stay when it ends.
// With progress bars; Ctrl-C saves and throws Error(interrupted).
RepairResult repair(Network& network, const RepairData& data, const RepairOptions& options,
                    const RepairListener& listener);

// The files that may be written while it works, named after `stem`.
std::vector<std::filesystem::path> repair_checkpoints(const std::filesystem::path& stem, const RepairOptions& options);

// clean-before, -after, -lost; tests-before, ...; one of each for every attack, by its name; broken, mended.
std::vector<std::string> repair_figure_names(const RepairOptions& options);
Figures figures_of(const RepairResult& result, const RepairOptions& options);

// What it was made of, in a line, for the model's card.
std::string describe(const RepairResult& result, const RepairOptions& options);

}  // namespace galvani
