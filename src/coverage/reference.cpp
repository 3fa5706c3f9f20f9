#include "coverage/reference.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "coverage/builtin.h"

namespace galvani {

Reference::Reference(const TraceLayout& layout, const std::string& tap)
    : block_(layout.block(tap)),
      learned_(static_cast<std::size_t>(layout.classes)),
      begins_(static_cast<std::size_t>(layout.classes) + 1, 0),
      traces_(at::empty({0, block_.count})) {}

void Reference::learn(const Traces& traces) {
  for (std::int64_t i = 0; i < traces.size(); ++i) {
    if (!traces.usable[static_cast<std::size_t>(i)]) continue;
    const float* row = traces.row(i) + block_.first;
    auto& rows = learned_[static_cast<std::size_t>(traces.predicted.data_ptr<std::int64_t>()[i])];
    rows.insert(rows.end(), row, row + block_.count);
  }
}

void Reference::finish() {
  std::vector<at::Tensor> parts;
  for (std::size_t label = 0; label < learned_.size(); ++label) {
    std::int64_t n = static_cast<std::int64_t>(learned_[label].size()) / block_.count;
    begins_[label + 1] = begins_[label] + n;
    parts.push_back(at::tensor(learned_[label], at::kFloat).view({n, block_.count}));
    learned_[label].clear();
    learned_[label].shrink_to_fit();
  }
  traces_ = at::cat(parts);
}

at::Tensor Reference::of_class(std::int64_t label) const {
  return traces_.narrow(0, begin(label), count(label));
}

std::string Reference::summary() const {
  return fmt::format("{} reference traces of {} ({} wide)", traces_.size(0), block_.tap, block_.count);
}

void Reference::save(ArchiveWriter& out) const {
  out.put(begins_);
  const float* data = traces_.data_ptr<float>();
  out.put(std::vector<float>(data, data + traces_.numel()));
}

void Reference::load(ArchiveReader& in) {
  begins_ = in.get_vector<std::int64_t>(begins_.size());
  auto values = in.get_vector<float>();
  std::int64_t n = static_cast<std::int64_t>(values.size()) / block_.count;
  bool fits = n * block_.count == static_cast<std::int64_t>(values.size()) && begins_.front() == 0 &&
              begins_.back() == n && std::is_sorted(begins_.begin(), begins_.end());
  if (!fits) in.broken("holds traces that do not fit its classes");
  traces_ = at::tensor(values, at::kFloat).view({n, block_.count});
  if (!traces_.isfinite().all().item<bool>()) in.broken("holds traces that are not finite");
}

std::string Reference::tap_of(const Options& options, const TraceLayout& layout) {
  if (!options.text("tap").empty()) return layout.block(options.text("tap")).tap;
  return layout.blocks[layout.blocks.size() - (layout.blocks.size() > 1 ? 2 : 1)].tap;
}

std::unique_ptr<ProfilePart> make_reference(const std::string& name, const TraceLayout& layout) {
  std::string prefix = Reference::part_name("");
  if (name.rfind(prefix, 0) != 0) return nullptr;
  return std::make_unique<Reference>(layout, name.substr(prefix.size()));
}

std::vector<std::string> reference_part(const Options& options, const TraceLayout& layout) {
  return {Reference::part_name(Reference::tap_of(options, layout))};
}

}  // namespace galvani
