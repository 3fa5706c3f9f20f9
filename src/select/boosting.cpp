#include "select/boosting.h"

#ifdef GALVANI_XGBOOST
#include <xgboost/c_api.h>
#endif

#include <limits>
#include <string>

#include "galvani/base/error.h"

namespace galvani {

void BoostedRanker::require() {
  if (!available())
    bad_usage("prima ranks with XGBoost, which this build has not: install libxgboost-dev and build again");
}

#ifdef GALVANI_XGBOOST

namespace {

void checked(int code) {
  if (code != 0) fail(ErrorCode::internal, "XGBoost: {}", XGBGetLastError());
}

// A matrix of XGBoost's.
class BoostMatrix {
 public:
  BoostMatrix(const std::vector<float>& values, std::int64_t rows) {
    checked(XGDMatrixCreateFromMat(values.data(), static_cast<bst_ulong>(rows),
                                   rows > 0 ? values.size() / static_cast<std::size_t>(rows) : 0,
                                   std::numeric_limits<float>::quiet_NaN(), &handle_));
  }
  ~BoostMatrix() { XGDMatrixFree(handle_); }
  BoostMatrix(const BoostMatrix&) = delete;
  BoostMatrix& operator=(const BoostMatrix&) = delete;
  DMatrixHandle get() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

}  // namespace

struct BoostedRanker::Handle {
  BoosterHandle booster = nullptr;
  ~Handle() { XGBoosterFree(booster); }
};

bool BoostedRanker::available() {
  return true;
}

BoostedRanker::BoostedRanker(const std::vector<float>& features, const std::vector<float>& relevant,
                             std::int64_t rounds, std::uint64_t seed)
    : handle_(std::make_unique<Handle>()) {
  BoostMatrix matrix(features, static_cast<std::int64_t>(relevant.size()));
  checked(XGDMatrixSetFloatInfo(matrix.get(), "label", relevant.data(), relevant.size()));
  auto all = static_cast<unsigned>(relevant.size());
  checked(XGDMatrixSetUIntInfo(matrix.get(), "group", &all, 1));
  DMatrixHandle matrices[] = {matrix.get()};
  checked(XGBoosterCreate(matrices, 1, &handle_->booster));
  // One thread: sums of gradients must not depend on how many there are.
  const std::vector<std::pair<std::string, std::string>> settings = {{"objective", "rank:pairwise"},
                                                                     {"max_depth", "5"},
                                                                     {"eta", "0.05"},
                                                                     {"nthread", "1"},
                                                                     {"verbosity", "0"},
                                                                     {"tree_method", "exact"},
                                                                     {"seed", std::to_string(seed % 1000000007)}};
  for (const auto& [name, value] : settings) checked(XGBoosterSetParam(handle_->booster, name.c_str(), value.c_str()));
  for (int round = 0; round < static_cast<int>(rounds); ++round)
    checked(XGBoosterUpdateOneIter(handle_->booster, round, matrix.get()));
}

std::vector<float> BoostedRanker::score(const std::vector<float>& features, std::int64_t n) const {
  BoostMatrix matrix(features, n);
  bst_ulong count = 0;
  const float* scores = nullptr;
  checked(XGBoosterPredict(handle_->booster, matrix.get(), 0, 0, 0, &count, &scores));
  return {scores, scores + count};
}

#else

struct BoostedRanker::Handle {};

bool BoostedRanker::available() {
  return false;
}

BoostedRanker::BoostedRanker(const std::vector<float>&, const std::vector<float>&, std::int64_t, std::uint64_t) {
  require();
}

std::vector<float> BoostedRanker::score(const std::vector<float>&, std::int64_t) const {
  return {};
}

#endif

BoostedRanker::~BoostedRanker() = default;

}  // namespace galvani
