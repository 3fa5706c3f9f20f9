#include "galvani/fuzz/references.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/log.h"
#include "galvani/model/answers.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"

namespace galvani {
namespace {

constexpr double kUsualTolerance = 0.1;  // of what references spread over

void settle_tolerance(Network& network, const Dataset& data) {
  const Question& question = network.info().question;
  if (question.task != Task::regression || question.tolerance > 0) return;
  double spread = spread_of(data.answers);
  if (!(spread > 0))
    bad_usage("{}: what is right is the same for every input, so --tolerance has to say what counts as a deviation",
              data.name);
  // Few digits, so that what is said is what is used.
  double tolerance = std::strtod(fmt::format("{:.2g}", kUsualTolerance * spread).c_str(), nullptr);
  network.set_tolerance(tolerance);
  log::info(
      "{}: a fault is an answer that deviates by more than {:.4g}, a tenth of what is right spreads over ({:.4g}); "
      "--tolerance says otherwise",
      network.info().path, tolerance, spread);
}

}  // namespace

bool settle_labels(Network& network, Dataset& data, bool own) {
  const Question& question = network.info().question;
  if (!question.by_reference()) {
    if (own) data.labels = predict(network, data.images).labels;
    return own;
  }
  if (!own && !data.answers.defined())
    log::info("{}: does not say what is right, so answers are held against those to the original", data.name);
  own = own || !data.answers.defined();
  if (own) {
    Request request;
    request.answers = true;
    at::Tensor answers = network.run(data.images, request).answers;
    at::Tensor finite = at::isfinite(answers).all(1);
    if (!finite.all().item<bool>())
      bad_input("{}: gives answers that are no finite numbers for {} of {}", network.info().path,
                data.size() - finite.sum().item<std::int64_t>(), data.name);
    data.answers = question.references_of(answers).contiguous();
  }
  data.labels = at::full({data.size()}, Question::kHolds, at::kLong);
  settle_tolerance(network, data);
  return own;
}

std::string reference_text(const at::Tensor& row) {
  std::string text;
  // Nine digits give back every float.
  for (std::int64_t i = 0; i < row.numel(); ++i)
    text += fmt::format("{}{:.9g}", i > 0 ? "," : "", row[i].item<float>());
  return text;
}

namespace {

at::Tensor parse_reference(const std::string& text, std::int64_t outputs, const std::string& where) {
  std::vector<float> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    float value = 0;
    auto [rest, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (rest != end && *rest != ',')) break;
    numbers.push_back(value);
    at = rest == end ? end : rest + 1;
  }
  if (at != end || static_cast<std::int64_t>(numbers.size()) != outputs)
    bad_input("{}: holds a seed without what its answer is held against; it is damaged", where);
  return at::tensor(numbers, at::kFloat);
}

}  // namespace

at::Tensor references_of(const std::vector<SeedRecord>& seeds, const Network& network, const std::string& where) {
  const Question& question = network.info().question;
  if (!question.by_reference()) return {};
  std::vector<at::Tensor> rows;
  rows.reserve(seeds.size());
  for (const SeedRecord& seed : seeds) rows.push_back(parse_reference(seed.reference, question.outputs, where));
  if (rows.empty()) bad_input("{}: has no seeds", where);
  return at::stack(rows);
}

SeedReferences::SeedReferences(const CampaignReader& reader, const Network& network) {
  const Question& question = network.info().question;
  Task task = reader.record().task();
  bool by_reference = reader.record().by_reference();
  if (by_reference != question.by_reference() || (by_reference && task != question.task))
    bad_usage("{}: its task is {}, that of {} is {}", network.info().path, to_string(question.task),
              reader.folder().string(), to_string(task));
  std::vector<SeedRecord> seeds = reader.seeds();
  rows_ = references_of(seeds, network, reader.folder().string());
  for (std::size_t i = 0; i < seeds.size(); ++i) row_of_.emplace(seeds[i].id, static_cast<std::int64_t>(i));
}

at::Tensor SeedReferences::of(const std::vector<std::int64_t>& seeds) const {
  if (!rows_.defined()) return {};
  std::vector<std::int64_t> rows;
  rows.reserve(seeds.size());
  for (std::int64_t seed : seeds) {
    auto row = row_of_.find(seed);
    if (row == row_of_.end()) bad_input("a fault was made of seed {}, which is not stored", seed);
    rows.push_back(row->second);
  }
  return rows_.index_select(0, at::tensor(rows, at::kLong));
}

}  // namespace galvani
