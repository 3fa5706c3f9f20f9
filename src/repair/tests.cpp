#include "galvani/repair/tests.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/parallel.h"
#include "galvani/base/rng.h"
#include "galvani/fuzz/merge.h"
#include "galvani/fuzz/reader.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"
#include "repair/labelled_table.h"

namespace galvani {
namespace {

constexpr double kUnknownChange = std::numeric_limits<double>::quiet_NaN();

FoundTests read_campaign(const Network& network, const std::string& folder, std::int64_t per_seed) {
  CampaignReader reader(folder);
  std::map<std::int64_t, std::string> seeds;
  for (const SeedRecord& seed : reader.seeds()) seeds[seed.id] = seed.sha256;
  std::map<std::int64_t, std::int64_t> taken;
  std::vector<FaultRecord> faults;
  FoundTests tests;
  FaultFilter distinct;
  distinct.distinct_only = true;
  reader.for_each_fault(distinct, [&](const FaultRecord& fault) {
    if (per_seed > 0 && taken[fault.seed] >= per_seed) {
      tests.left_out += 1;
      return;
    }
    taken[fault.seed] += 1;
    faults.push_back(fault);
  });
  if (faults.empty()) bad_input("{}: has no faults, so there is nothing to repair with", folder);
  if (reader.classes() != network.info().classes)
    bad_input("{}: is of a model with {} classes, but {} has {}", folder, reader.classes(), network.info().path,
              network.info().classes);
  check_fits(network, reader.image(faults[0]).sizes(), folder);
  auto count = static_cast<std::int64_t>(faults.size());
  tests.images.images = at::empty(reader.type().batch(count), reader.type().dtype());
  tests.images.rate = reader.type().rate;
  tests.images.labels = at::empty({count}, at::kLong);
  tests.images.name = folder;
  for (const FaultRecord& fault : faults) {
    tests.images.labels[static_cast<std::int64_t>(tests.seeds.size())] = fault.label;
    tests.images.files.push_back(fault.file);
    tests.seeds.push_back(seeds.at(fault.seed));
    tests.changes.push_back(fault.change > 0 ? fault.change : kUnknownChange);
  }
  workers().run(count, [&](std::int64_t i, int) {
    tests.images.images[i].copy_(reader.image(faults[static_cast<std::size_t>(i)]));
  });
  return tests;
}

// Every input is a seed of its own.
FoundTests tests_of(const Dataset& all, const std::string& name, std::int64_t per_seed) {
  FoundTests tests;
  std::map<std::string, std::int64_t> taken;
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < all.size(); ++i) {
    std::string own = pixels_of(all.images[i]);
    if (per_seed > 0 && taken[own] >= per_seed) {
      tests.left_out += 1;
      continue;
    }
    taken[own] += 1;
    rows.push_back(i);
    tests.seeds.push_back(own);
    tests.changes.push_back(kUnknownChange);
  }
  tests.images = all.subset(rows);
  tests.images.name = name;
  return tests;
}

FoundTests read_data(const Network& network, const std::string& spec, std::int64_t per_seed) {
  Dataset all = open_data_for(network, spec).load();
  if (!all.labelled()) bad_input("{}: has images without a label, so they cannot be repaired with", spec);
  return tests_of(all, spec, per_seed);
}

}  // namespace

std::int64_t FoundTests::seed_count() const {
  return static_cast<std::int64_t>(std::set<std::string>(seeds.begin(), seeds.end()).size());
}

FoundTests FoundTests::subset(const std::vector<std::int64_t>& rows) const {
  FoundTests result;
  result.images = images.subset(rows);
  result.images.name = images.name;
  for (std::int64_t row : rows) {
    result.seeds.push_back(seeds[static_cast<std::size_t>(row)]);
    result.changes.push_back(changes[static_cast<std::size_t>(row)]);
  }
  return result;
}

std::string pixels_of(const at::Tensor& input) {
  at::Tensor values = input.contiguous();
  return sha256({static_cast<const char*>(values.data_ptr()), values.nbytes()});
}

void check_repairable(const Network& network) {
  if (network.info().input.size() != 3)
    bad_input("{}: takes sounds; only image models are repaired", network.info().path);
}

FoundTests read_tests(const Network& network, const std::string& where, std::int64_t per_seed) {
  check_repairable(network);
  FoundTests tests = holds_campaign(where)      ? read_campaign(network, where, per_seed)
                     : is_labelled_table(where) ? tests_of(read_labelled_table(network, where), where, per_seed)
                                                : read_data(network, where, per_seed);
  check_labels(network, tests.images);
  return tests;
}

FoundTests join(const std::vector<FoundTests>& parts) {
  FoundTests all;
  std::vector<at::Tensor> images, labels;
  for (const FoundTests& part : parts) {
    if (part.size() == 0) continue;
    images.push_back(part.images.images);
    labels.push_back(part.images.labels);
    all.seeds.insert(all.seeds.end(), part.seeds.begin(), part.seeds.end());
    all.changes.insert(all.changes.end(), part.changes.begin(), part.changes.end());
    all.images.name += (all.images.name.empty() ? "" : "+") + part.images.name;
  }
  if (images.empty()) return all;
  all.images.images = at::cat(images);
  all.images.labels = at::cat(labels);
  return all;
}

std::set<std::string> hold_out_seeds(const std::vector<FoundTests>& tests, double share, std::uint64_t seed) {
  std::set<std::string> all;
  for (const FoundTests& part : tests) all.insert(part.seeds.begin(), part.seeds.end());
  if (all.size() < 2)
    bad_input("{}: all tests were made of one seed, so none can be held out; give tests of more seeds",
              tests.empty() ? "no tests" : tests[0].images.name);
  std::vector<std::string> order(all.begin(), all.end());
  Rng(seed).derive("held-out seeds").shuffle(order);
  auto wanted = std::llround(static_cast<double>(order.size()) * share);
  auto count = std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, order.size() - 1);
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::vector<std::int64_t> rows_of_seeds(const FoundTests& tests, const std::set<std::string>& seeds, bool among) {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < tests.seeds.size(); ++i) {
    if ((seeds.count(tests.seeds[i]) != 0) == among) rows.push_back(static_cast<std::int64_t>(i));
  }
  return rows;
}

}  // namespace galvani
