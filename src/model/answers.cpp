#include "galvani/model/answers.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"

namespace galvani {
namespace {

constexpr std::int64_t kMicroBatchesOfPiece = 16;
constexpr double kLow = 0.05, kHigh = 0.95;

}  // namespace

at::Tensor shown_answers(const NetworkInfo& info, const at::Tensor& answers) {
  return info.question.task == Task::multi_label ? answers.sigmoid() : answers;
}

void answer_stream(Network& network, const DataView& data, const std::string& title,
                   const std::function<void(const at::Tensor&, std::int64_t)>& sink) {
  check_fits(network, data.type().shape, data.name);
  Progress progress(title, data.size(), data.type().noun());
  std::int64_t chunk = network.execution().micro_batch * kMicroBatchesOfPiece * workers().size();
  Request request;
  request.answers = true;
  data.for_each_piece(chunk, [&](const at::Tensor& inputs, std::int64_t first) {
    sink(network.run(inputs, request).answers, first);
    progress.advance(inputs.size(0));
  });
}

std::string answer_text(const Question& question, const std::vector<std::string>& names, const at::Tensor& row) {
  std::string text;
  std::int64_t labels = 0;
  for (std::int64_t i = 0; i < row.numel(); ++i) {
    auto value = static_cast<double>(row[i].item<float>());
    std::string name =
        static_cast<std::size_t>(i) < names.size() ? printable(names[static_cast<std::size_t>(i)]) : std::to_string(i);
    if (question.task == Task::regression) {
      if (row.numel() > 1) text += (text.empty() ? "" : ", ") + name + " ";
      text += fmt::format("{:.4g}", value);
    } else if (value > question.threshold) {
      text += (labels++ > 0 ? ", " : "") + name;
    }
  }
  return text.empty() ? "no label" : text;
}

double AnswerEvaluation::Output::f1() const {
  std::int64_t both = positive + alarms;
  return both > 0 ? 2 * static_cast<double>(found) / static_cast<double>(both) : 0;
}

AnswerScoring::AnswerScoring(const Question& question, at::Tensor references)
    : question_(question), references_(std::move(references)), answers_(at::empty_like(references_)) {}

void AnswerScoring::add(const at::Tensor& answers, std::int64_t first) {
  answers_.narrow(0, first, answers.size(0)).copy_(answers);
}

AnswerEvaluation AnswerScoring::result() const {
  AnswerEvaluation result;
  result.inputs = answers_.size(0);
  at::Tensor finite = at::isfinite(answers_).all(1).nonzero().flatten();
  result.not_a_number = result.inputs - finite.numel();
  at::Tensor answers = answers_.index_select(0, finite), right = references_.index_select(0, finite);
  bool numbers = question_.task == Task::regression;
  result.spread = numbers ? spread_of(references_) : 0;
  at::Tensor off = question_.deviations(answers, right);
  at::Tensor fine = numbers ? off.le(question_.tolerance) : off.eq(0);
  (numbers ? result.within : result.exact) = fine.sum().item<std::int64_t>();
  at::Tensor said = numbers ? answers : question_.references_of(answers);
  for (std::int64_t k = 0; k < answers.size(1); ++k) {
    AnswerEvaluation::Output& output = result.outputs.emplace_back();
    at::Tensor a = said.select(1, k).to(at::kDouble), r = right.select(1, k).to(at::kDouble);
    if (answers.size(0) == 0) continue;
    if (numbers) {
      output.mean_error = (a - r).abs().mean().item<double>();
      output.root_mean_square = std::sqrt((a - r).square().mean().item<double>());
      auto variance = (r - r.mean()).square().sum().item<double>();
      if (variance > 0) output.explained = 1 - (a - r).square().sum().item<double>() / variance;
      continue;
    }
    output.right = a.eq(r).sum().item<std::int64_t>();
    output.positive = r.gt(0).sum().item<std::int64_t>();
    output.alarms = a.gt(0).sum().item<std::int64_t>();
    output.found = a.mul(r).gt(0).sum().item<std::int64_t>();
  }
  return result;
}

double spread_of(const at::Tensor& rows) {
  if (rows.size(0) == 0) return 0;
  at::Tensor sorted = std::get<0>(rows.sort(0));
  auto at_share = [&](double share) { return sorted[std::llround(share * static_cast<double>(rows.size(0) - 1))]; };
  return (at_share(kHigh) - at_share(kLow)).max().item<double>();
}

}  // namespace galvani
