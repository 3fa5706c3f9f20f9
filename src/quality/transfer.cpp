#include "galvani/quality/transfer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/plot.h"
#include "galvani/base/progress.h"
#include "galvani/model/evaluate.h"

namespace galvani {
namespace {

constexpr std::int64_t kTestsAtOnce = 512;

std::vector<std::int64_t> drawn_tests(const TestSet& tests, std::int64_t most, std::uint64_t seed) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(tests.size()));
  std::iota(rows.begin(), rows.end(), 0);
  if (most == 0 || tests.size() <= most) return rows;
  rows = Rng(seed).derive("transfer").sample(tests.size(), most);
  std::sort(rows.begin(), rows.end());
  return rows;
}

void add_verdicts(Network& model, const TestRows& rows, const std::vector<std::int64_t>& ids, TransferCell& cell) {
  at::Tensor right = predict(model, rows.originals).labels == rows.labels;
  at::Tensor wrong = predict(model, rows.tests).labels != rows.labels;
  cell.tests += rows.tests.size(0);
  cell.right += right.sum().item<std::int64_t>();
  cell.wrong += wrong.sum().item<std::int64_t>();
  at::Tensor broken = right.logical_and(wrong);
  cell.broken += broken.sum().item<std::int64_t>();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (broken.data_ptr<bool>()[i]) cell.broken_ids.push_back(ids[i]);
  }
}

}  // namespace

double TransferCell::rate() const {
  return right == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(broken) / static_cast<double>(right);
}

double Transfer::mean() const {
  double sum = 0;
  std::int64_t count = 0;
  for (const TransferRow& row : rows) {
    for (const TransferCell& cell : row.cells) {
      if (cell.own || cell.right == 0) continue;
      sum += cell.rate();
      ++count;
    }
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

double Transfer::highest() const {
  double most = std::numeric_limits<double>::quiet_NaN();
  for (const TransferRow& row : rows) {
    for (const TransferCell& cell : row.cells) {
      if (!cell.own && cell.right > 0) most = std::isnan(most) ? cell.rate() : std::max(most, cell.rate());
    }
  }
  return most;
}

Transfer measure_transfer(const std::vector<TransferSource>& sources, const std::vector<Network*>& models,
                          std::int64_t most, std::uint64_t seed) {
  Transfer transfer;
  for (const Network* model : models)
    transfer.models.push_back(std::filesystem::path(model->info().path).stem().string());
  std::int64_t work = 0;
  for (const TransferSource& source : sources) {
    for (Network* model : models) check_fits(*model, source.tests->type().shape, source.name);
    work += static_cast<std::int64_t>(drawn_tests(*source.tests, most, seed).size());
  }
  Progress progress("transfer", work * static_cast<std::int64_t>(models.size()), "tests");
  for (const TransferSource& source : sources) {
    TransferRow row{source.name, std::vector<TransferCell>(models.size())};
    std::vector<std::int64_t> all = drawn_tests(*source.tests, most, seed);
    for (std::size_t first = 0; first < all.size(); first += kTestsAtOnce) {
      auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), first + kTestsAtOnce));
      TestRows rows = source.tests->fetch({begin, end});
      std::vector<std::int64_t> ids;
      for (auto test = begin; test != end; ++test) ids.push_back(source.tests->id(*test));
      for (std::size_t m = 0; m < models.size(); ++m) {
        check_interrupt();
        add_verdicts(*models[m], rows, ids, row.cells[m]);
        progress.advance(rows.tests.size(0));
      }
    }
    for (std::size_t m = 0; m < models.size(); ++m) row.cells[m].own = models[m]->info().sha256 == source.model_sha256;
    transfer.rows.push_back(std::move(row));
  }
  progress.finish();
  return transfer;
}

Figures figures_of(const Transfer& transfer) {
  std::int64_t broken = 0;
  for (const TransferRow& row : transfer.rows) {
    for (const TransferCell& cell : row.cells) broken += cell.own ? 0 : cell.broken;
  }
  return {{"transfer", transfer.mean()}, {"highest", transfer.highest()}, {"broken", static_cast<double>(broken)}};
}

Json as_json(const Transfer& transfer) {
  auto number = [](double value) { return std::isnan(value) ? Json() : Json(value); };
  Json rows = Json::array();
  for (const TransferRow& row : transfer.rows) {
    Json cells = Json::array();
    for (std::size_t m = 0; m < row.cells.size(); ++m) {
      const TransferCell& cell = row.cells[m];
      Json one = {{"model", transfer.models[m]}, {"tests", cell.tests},          {"right", cell.right},
                  {"broken", cell.broken},       {"wrong", cell.wrong},          {"own", cell.own},
                  {"rate", number(cell.rate())}, {"broken_ids", cell.broken_ids}};
      if (cell.right > 0) {
        ShareInterval interval = wilson_interval(cell.broken, cell.right);
        one["interval"] = {interval.low, interval.high};
      }
      cells.push_back(std::move(one));
    }
    rows.push_back({{"tests", row.name}, {"models", cells}});
  }
  return {{"models", transfer.models},
          {"rows", rows},
          {"transfer", number(transfer.mean())},
          {"highest", number(transfer.highest())}};
}

std::string transfer_svg(const Transfer& transfer) {
  HeatMap map;
  map.title = "How many tests of one model break another";
  map.x_title = "model";
  map.y_title = "tests";
  map.columns = transfer.models;
  for (const TransferRow& row : transfer.rows) {
    map.rows.push_back(std::filesystem::path(row.name).filename().string());
    std::vector<double> values;
    for (const TransferCell& cell : row.cells) values.push_back(cell.rate());
    map.values.push_back(std::move(values));
  }
  return heat_map_svg(map);
}

}  // namespace galvani
