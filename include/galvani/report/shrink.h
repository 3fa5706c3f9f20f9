// The least that makes a fault: the shortest lineage and the smallest change that still fail.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "galvani/fuzz/reader.h"
#include "galvani/model/network.h"
#include "galvani/mutate/engine.h"

namespace galvani {

struct ShrinkOptions {
  bool keep_class = false;  // it must be taken for the same class; otherwise any wrong one will do
};

struct ShrunkFault {
  FaultRecord fault;
  std::vector<std::string> rules_before;
  std::vector<std::string> rules;  // a part of them, in the same order; a step may be weaker
  Change before;                   // against the reference: the seed, with the lineage's affine step if it has one
  Change after;
  std::int64_t predicted = 0;  // what the result is taken for
  double confidence = 0;
  at::Tensor seed;            // [C, H, W] uint8, or [channels, length] int16
  at::Tensor original;        // the fault
  at::Tensor image;           // the result
  std::int64_t verdicts = 0;  // how many the search took
  bool repeatable = true;     // the lineage gives the fault's image; otherwise only its pixels are looked at
};

class FaultShrinker {
 public:
  // Verdicts are canonical: every image alone.
  FaultShrinker(const CampaignReader& reader, Network& network, const ShrinkOptions& options = {});
  ~FaultShrinker();

  // Error(bad_input) if the fault's file is gone or it does not fail.
  ShrunkFault shrink(const FaultRecord& fault);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether each of some images still does what it must.
using FailCheck = std::function<std::vector<bool>(const std::vector<at::Tensor>&)>;
// Sets as many pixels of a failing image, or moments of a sound, back to the reference as it can, block by block in
// ever smaller ones, and then brings what is left nearer to it. REQUIRES that `image` fails.
at::Tensor shrink_pixels(const at::Tensor& reference, const at::Tensor& image, const FailCheck& fails);

// `minimised.csv`, a PNG or WAV file for each, and `sheet.png`: original, fault, result and what is left of the change.
void write_shrunk(const std::filesystem::path& folder, const CampaignReader& reader,
                  const std::vector<ShrunkFault>& faults);

}  // namespace galvani
