#include "galvani/semantics/text_encoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "galvani/base/error.h"
#include "galvani/base/utf8.h"

namespace galvani {
namespace {

// Of length 1; what has no length, or one that is no number, becomes zeros.
void normalise(float* row, std::int64_t width) {
  double squares = 0;
  for (std::int64_t d = 0; d < width; ++d) squares += static_cast<double>(row[d]) * row[d];
  bool usable = squares > 0 && std::isfinite(squares);
  double scale = usable ? 1 / std::sqrt(squares) : 0;
  for (std::int64_t d = 0; d < width; ++d) row[d] = usable ? static_cast<float>(row[d] * scale) : 0;
}

}  // namespace

at::Tensor TextEncoder::encode(const std::vector<std::string>& texts) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> fresh;
  std::unordered_set<std::string> seen;
  for (const std::string& text : texts) {
    if (text.empty() || row_of_.count(text) > 0 || !seen.insert(text).second) continue;
    if (!is_utf8(text)) bad_input("a text to encode is not UTF-8: '{}'", printable(text));
    fresh.push_back(text);
  }
  std::int64_t d = width();
  auto stride = static_cast<std::size_t>(d);
  if (!fresh.empty()) {
    at::Tensor made = run(fresh).to(at::kFloat).contiguous();
    if (made.dim() != 2 || made.size(0) != static_cast<std::int64_t>(fresh.size()) || made.size(1) != d)
      fail(ErrorCode::internal, "text encoder {} gave no [{}, {}]", id_, fresh.size(), d);
    std::size_t kept = rows_.size();
    rows_.insert(rows_.end(), made.data_ptr<float>(), made.data_ptr<float>() + made.numel());
    for (std::string& text : fresh) {
      normalise(rows_.data() + kept, d);
      row_of_.emplace(std::move(text), kept / stride);
      kept += stride;
    }
  }
  at::Tensor result = at::zeros({static_cast<std::int64_t>(texts.size()), d}, at::kFloat);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto it = row_of_.find(texts[i]);
    if (it == row_of_.end()) continue;  // empty
    std::copy_n(rows_.data() + it->second * stride, stride, result.data_ptr<float>() + i * stride);
  }
  return result;
}

std::size_t TextEncoder::kept() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return row_of_.size();
}

double cosine(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor left = a.reshape(-1).to(at::kDouble).contiguous();
  at::Tensor right = b.reshape(-1).to(at::kDouble).contiguous();
  if (left.numel() != right.numel())
    fail(ErrorCode::internal, "vectors of {} and {} numbers have no cosine", left.numel(), right.numel());
  const double* x = left.data_ptr<double>();
  const double* y = right.data_ptr<double>();
  double product = 0;
  double xx = 0;
  double yy = 0;
  for (std::int64_t d = 0; d < left.numel(); ++d) {
    product += x[d] * y[d];
    xx += x[d] * x[d];
    yy += y[d] * y[d];
  }
  if (xx == 0 || yy == 0) return 0;
  return std::clamp(product / std::sqrt(xx * yy), -1.0, 1.0);
}

std::unique_ptr<TextEncoder> make_text_encoder(const Spec& spec) {
  std::unique_ptr<TextEncoder> encoder = text_encoders().create(spec);
  Options options = text_encoders().options(spec);
  encoder->id_ = text_encoders().at(spec.name).name;
  encoder->spec_ = options.str();
  return encoder;
}

}  // namespace galvani
