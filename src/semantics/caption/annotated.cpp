#include "semantics/caption/annotated.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/parallel.h"
#include "galvani/base/progress.h"
#include "galvani/base/text.h"
#include "galvani/data/npy.h"
#include "semantics/caption/scenes.h"

namespace galvani {
namespace {

constexpr std::int64_t kLearnFrom = 200;  // neurons, for where strengths count from
constexpr std::int64_t kTogetherDrawn = 64;

// images [L, 3, side, side] uint8 and masks [L, positions].
at::Tensor annotated(const Annotator& annotator, const at::Tensor& images, const at::Tensor& masks) {
  std::vector<at::Tensor> seen;
  for (std::int64_t i = 0; i < images.size(0); ++i) seen.push_back(annotator.see(images[i]));
  return annotator.annotate(at::stack(seen), masks);
}

struct AnnotationRow {
  std::string layer;
  std::int64_t unit;
  std::string sentence;
};

// Lower case, without marks at the ends of words.
std::string plain_sentence(const std::string& text) {
  std::string result;
  for (char c : text) {
    bool mark = c == '.' || c == ',' || c == ';' || c == '!' || c == '?' || c == '"';
    result += mark ? ' ' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

std::vector<AnnotationRow> read_annotations(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file, std::uint64_t{256} << 20));
  std::string line;
  std::getline(lines, line);
  auto cells_of = [](std::string& text) {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    return split_csv_line(text);
  };
  std::vector<std::string> titles = cells_of(line);
  auto column = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      auto found = std::find(titles.begin(), titles.end(), name);
      if (found != titles.end()) return static_cast<std::size_t>(found - titles.begin());
    }
    bad_input("{}: its first line has no column '{}'", file.string(), *names.begin());
  };
  std::size_t layer = column({"layer"});
  std::size_t unit = column({"unit"});
  std::size_t sentence = column({"summary", "annotation"});
  std::vector<AnnotationRow> rows;
  for (std::int64_t number = 2; std::getline(lines, line); ++number) {
    std::vector<std::string> cells = cells_of(line);
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (cells.size() <= std::max({layer, unit, sentence}))
      bad_input("{}: line {} has {} columns, fewer than the first line", file.string(), number, cells.size());
    const std::string& name = cells[layer];
    bool is_number = !cells[unit].empty() && cells[unit].size() < 10 &&
                     cells[unit].find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) bad_input("{}: line {}: the unit '{}' is no number", file.string(), number, printable(cells[unit]));
    if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
      bad_input("{}: line {}: '{}' cannot be the name of a folder", file.string(), number, printable(name));
    rows.push_back({name, std::stoll(cells[unit]), plain_sentence(cells[sentence])});
  }
  if (rows.empty()) bad_input("{}: has no annotations", file.string());
  return rows;
}

// The pictures and masks of a layer.
struct AnnotatedLayer {
  at::Tensor images, masks;
  AnnotatedLayer() = default;
  explicit AnnotatedLayer(const std::filesystem::path& folder)
      : images(read_npy(folder / "images.npy")), masks(read_npy(folder / "masks.npy")) {
    if (images.dim() != 5 || images.size(2) != 3)
      bad_input("{}: must be [units, pictures, 3, height, width]", (folder / "images.npy").string());
    if (masks.dim() == 5 && masks.size(2) == 1) masks = masks.squeeze(2);
    bool fits = masks.dim() == 4 && masks.size(0) == images.size(0) && masks.size(1) == images.size(1) &&
                masks.size(2) == images.size(3) && masks.size(3) == images.size(4) && masks.numel() > 0;
    if (!fits) bad_input("{}: does not fit the pictures beside it", (folder / "masks.npy").string());
    // Floats are 0..1, as is usual.
    if (images.is_floating_point()) images = (images * 255).round().clamp(0, 255).to(at::kByte);
    if (images.scalar_type() != at::kByte)
      bad_input("{}: must hold bytes, or floats from 0 to 1", (folder / "images.npy").string());
  }
};

}  // namespace

AnnotatedNeurons drawn_neurons(const CaptionerOptions& options, Annotator& annotator) {
  Rng rng = Rng(options.seed).derive("scenes");
  std::vector<at::Tensor> first;
  for (std::int64_t i = 0; i < std::min(kLearnFrom, options.neurons); ++i)
    first.push_back(draw_neuron(1, rng.derive(static_cast<std::uint64_t>(i))).images);
  annotator.learn(at::cat(first));
  AnnotatedNeurons result;
  result.sentences.resize(static_cast<std::size_t>(options.neurons));
  std::vector<at::Tensor> rows(static_cast<std::size_t>(options.neurons));
  Progress progress("drawing", options.neurons, "neurons");
  for (std::int64_t begin = 0; begin < options.neurons; begin += kTogetherDrawn) {
    check_interrupt();
    std::int64_t n = std::min(kTogetherDrawn, options.neurons - begin);
    workers().run(n, [&](std::int64_t i, int) {
      auto place = static_cast<std::size_t>(begin + i);
      SceneNeuron neuron = draw_neuron(options.count, rng.derive(place));
      result.sentences[place] = neuron.sentence;
      rows[place] = annotated(annotator, neuron.images, neuron.masks.flatten(1));
    });
    progress.advance(n);
  }
  result.annotations = at::stack(rows);
  return result;
}

AnnotatedNeurons neurons_of_folder(const CaptionerOptions& options, Annotator& annotator) {
  std::vector<AnnotationRow> found = read_annotations(options.folder / "annotations.csv");
  std::map<std::string, AnnotatedLayer> layers;
  std::vector<at::Tensor> first;
  for (const AnnotationRow& row : found) {
    auto [place, is_new] = layers.try_emplace(row.layer);
    if (is_new) place->second = AnnotatedLayer(options.folder / row.layer);
    const AnnotatedLayer& layer = place->second;
    if (row.unit >= layer.images.size(0))
      bad_input("{}: unit {} of layer {} is annotated, but there are pictures of {}", options.folder.string(), row.unit,
                printable(row.layer), layer.images.size(0));
    if (layer.images.size(1) < options.count)
      bad_input("{}: has {} pictures a unit, fewer than --count {}", (options.folder / row.layer).string(),
                layer.images.size(1), options.count);
    if (static_cast<std::int64_t>(first.size()) < kLearnFrom)
      first.push_back(Annotator::fitted(layer.images[row.unit][0]));
  }
  annotator.learn(at::stack(first));
  AnnotatedNeurons result;
  std::vector<at::Tensor> rows(found.size());
  Progress progress("looking", static_cast<std::int64_t>(found.size()), "neurons");
  for (std::size_t begin = 0; begin < found.size(); begin += static_cast<std::size_t>(kTogetherDrawn)) {
    check_interrupt();
    auto n = static_cast<std::int64_t>(std::min(static_cast<std::size_t>(kTogetherDrawn), found.size() - begin));
    workers().run(n, [&](std::int64_t i, int) {
      const AnnotationRow& row = found[begin + static_cast<std::size_t>(i)];
      const AnnotatedLayer& layer = layers.at(row.layer);
      std::vector<at::Tensor> images, masks;
      for (std::int64_t k = 0; k < options.count; ++k) {
        images.push_back(Annotator::fitted(layer.images[row.unit][k]));
        masks.push_back(Annotator::fitted_mask(layer.masks[row.unit][k].to(at::kFloat)));
      }
      rows[begin + static_cast<std::size_t>(i)] = annotated(annotator, at::stack(images), at::stack(masks));
    });
    progress.advance(n);
  }
  for (const AnnotationRow& row : found) result.sentences.push_back(row.sentence);
  result.annotations = at::stack(rows);
  return result;
}

}  // namespace galvani
