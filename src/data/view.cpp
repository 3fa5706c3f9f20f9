#include "galvani/data/view.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "bounds.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"

namespace galvani {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

using Rows = std::vector<std::int64_t>;

// Rows in which whole data are gone through: enough of them to keep every worker busy.
std::int64_t piece_of(const SampleType& type) {
  return std::clamp<std::int64_t>(kPieceBytes / static_cast<std::int64_t>(type.bytes()), 16, 4096);
}

bool consecutive(const Rows& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] != rows[0] + static_cast<std::int64_t>(i)) return false;
  }
  return !rows.empty();
}

const Dataset& checked(const Dataset& data) {
  validate(data);
  return data;
}

std::string_view bytes_of(const at::Tensor& contiguous) {
  return {static_cast<const char*>(contiguous.data_ptr()), static_cast<std::size_t>(contiguous.nbytes())};
}

// Of all parts, or of none.
at::Tensor joined_answers(const std::vector<DataView>& parts) {
  std::vector<at::Tensor> answers;
  for (const DataView& part : parts) {
    if (part.answers.defined() != parts[0].answers.defined() ||
        (part.answers.defined() && part.answers.size(1) != parts[0].answers.size(1)))
      bad_input("{} and {} cannot be joined: what is right is not as many numbers for each input", parts[0].name,
                part.name);
    if (part.answers.defined()) answers.push_back(part.answers);
  }
  return answers.empty() ? at::Tensor() : at::cat(answers);
}

}  // namespace

DataView::DataView(Labelled about, SampleType type, Fetch fetch)
    : Labelled(std::move(about)), type_(std::move(type)), fetch_(std::make_shared<const Fetch>(std::move(fetch))) {
  validate(static_cast<const Labelled&>(*this));
}

DataView::DataView(const Dataset& data)
    : DataView(static_cast<const Labelled&>(checked(data)), data.type(), [images = data.images](const Rows& rows) {
        if (consecutive(rows)) return images.narrow(0, rows[0], static_cast<std::int64_t>(rows.size()));
        return images.index_select(0, label_tensor(rows));
      }) {}

at::Tensor DataView::fetch(std::int64_t first, std::int64_t count) const {
  Rows rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return fetch(rows);
}

at::Tensor DataView::fetch(const Rows& rows) const {
  for (std::int64_t row : rows) {
    if (row < 0 || row >= size())
      fail(ErrorCode::internal, "{}: input {} was asked for, but there are {}", name, row, size());
  }
  if (rows.empty()) return at::empty(type_.batch(0), type_.dtype());
  at::Tensor result = (*fetch_)(rows).contiguous();
  if (result.sizes() != at::IntArrayRef(type_.batch(static_cast<std::int64_t>(rows.size()))) ||
      result.scalar_type() != type_.dtype())
    fail(ErrorCode::internal, "{}: gave inputs of shape {}, not {}", name, result.sizes(), type_.str());
  return result;
}

void DataView::for_each_piece(std::int64_t piece,
                              const std::function<void(const at::Tensor&, std::int64_t)>& take) const {
  for (std::int64_t first = 0; first < size(); first += piece) {
    check_interrupt();
    take(fetch(first, std::min(piece, size() - first)), first);
  }
}

DataView DataView::subset(const Rows& indices) const {
  for (std::int64_t index : indices) {
    if (index < 0 || index >= size())
      fail(ErrorCode::internal, "{}: input {} was asked for, but there are {}", name, index, size());
  }
  return {subset_of(*this, indices), type_, [whole = fetch_, indices](const Rows& rows) {
            Rows of_whole;
            of_whole.reserve(rows.size());
            for (std::int64_t row : rows) of_whole.push_back(indices[static_cast<std::size_t>(row)]);
            return (*whole)(of_whole);
          }};
}

Dataset DataView::load() const {
  require_memory(name, static_cast<std::uint64_t>(size()) * type_.bytes());
  Dataset data{static_cast<const Labelled&>(*this), at::empty(type_.batch(size()), type_.dtype()), type_.rate};
  for_each_piece(piece_of(type_), [&](const at::Tensor& rows, std::int64_t first) {
    data.images.narrow(0, first, rows.size(0)).copy_(rows);
  });
  return data;
}

DataView concatenate(const std::vector<DataView>& parts) {
  const DataView& front = parts.at(0);
  if (parts.size() == 1) return front;
  Labelled about;
  std::vector<at::Tensor> labels;
  const DataView* named = nullptr;
  bool any_files = false;
  for (const DataView& part : parts) {
    if (part.type() != front.type())
      bad_input("{} and {} cannot be joined: their {} are {} and {}", front.name, part.name, front.type().noun(),
                front.type().shape_text(), part.type().shape_text());
    if (named != nullptr && !part.class_names.empty() && part.class_names != named->class_names)
      bad_input("{} and {} cannot be joined: their classes are {} and {}", named->name, part.name,
                printable(fmt::format("{}", fmt::join(named->class_names, ", "))),
                printable(fmt::format("{}", fmt::join(part.class_names, ", "))));
    if (named == nullptr && !part.class_names.empty()) named = &part;
    about.name += (about.name.empty() ? "" : "+") + part.name;
    labels.push_back(part.labels);
    any_files |= !part.files.empty();
  }
  for (const DataView& part : parts) {
    if (!any_files) break;
    about.files.insert(about.files.end(), part.files.begin(), part.files.end());
    if (part.files.empty()) about.files.resize(about.files.size() + static_cast<std::size_t>(part.size()));
  }
  if (named != nullptr) about.class_names = named->class_names;
  if (named != nullptr) about.sorted_classes = named->sorted_classes;
  about.labels = at::cat(labels);
  about.answers = joined_answers(parts);
  return {about, front.type(), [parts](const Rows& rows) {
            std::vector<at::Tensor> pieces;
            Rows run;  // of rows in one part
            const DataView* owner = nullptr;
            auto take = [&] {
              if (owner != nullptr) pieces.push_back(owner->fetch(run));
              run.clear();
            };
            for (std::int64_t row : rows) {
              const DataView* part = parts.data();
              while (row >= part->size()) row -= (part++)->size();
              if (part != owner) take();
              owner = part;
              run.push_back(row);
            }
            take();
            return pieces.size() == 1 ? pieces[0] : at::cat(pieces);
          }};
}

std::string content_hash(const DataView& data) {
  Sha256 values;
  data.for_each_piece(piece_of(data.type()),
                      [&](const at::Tensor& rows, std::int64_t) { values.update(bytes_of(rows)); });
  std::string labels = sha256(bytes_of(data.labels.contiguous()));
  if (data.answers.defined()) labels = sha256(labels + sha256(bytes_of(data.answers.contiguous())));
  std::string shape = fmt::format("{}", fmt::join(data.type().batch(data.size()), "x"));
  if (data.type().kind == SampleKind::audio) shape += fmt::format("@{}", data.type().rate);
  return sha256(fmt::format("{} {} {}", shape, values.finish(), labels));
}

}  // namespace galvani
