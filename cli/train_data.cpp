#include "train_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "galvani/base/rng.h"
#include "galvani/data/spec.h"

namespace galvani::cli {
namespace {

constexpr double kHoldOut = 0.1;

}  // namespace

std::string checkpoint_beside(const std::string& output) {
  std::error_code error;
  if (output.empty() || (std::filesystem::exists(output, error) && !std::filesystem::is_regular_file(output, error)))
    return "";
  return output + ".checkpoint";
}

Dataset hold_out(Dataset& data, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(data.size()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  Rng(seed).derive("hold out").shuffle(order);
  auto held = static_cast<std::ptrdiff_t>(std::lround(static_cast<double>(order.size()) * kHoldOut));
  std::vector<std::int64_t> test(order.begin(), order.begin() + held);
  std::vector<std::int64_t> rest(order.begin() + held, order.end());
  std::sort(test.begin(), test.end());
  std::sort(rest.begin(), rest.end());
  Dataset result = data.subset(test);
  result.name = data.name + " (held out)";
  std::string training_name = data.name;
  data = data.subset(rest);
  data.name = training_name;
  return result;
}

Dataset measuring_data(const std::string& said, const std::string& spec, Dataset& data, std::uint64_t seed,
                       const std::function<Dataset(const std::string& spec)>& load) {
  if (!said.empty()) return load(said);
  std::vector<DataSpec> specs = parse_data_specs(spec);
  if (specs.size() == 1 && !specs[0].is_path) return load(specs[0].source + ":test");
  return hold_out(data, seed);
}

}  // namespace galvani::cli
