#include "fuzz/seeds.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "fuzz/chain.h"
#include "fuzz/loose_ends.h"
#include "fuzz/rows.h"
#include "fuzz/schema.h"
#include "galvani/base/archive.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/interrupt.h"
#include "galvani/base/progress.h"
#include "galvani/base/rng.h"
#include "galvani/fuzz/reader.h"
#include "galvani/fuzz/references.h"
#include "galvani/model/evaluate.h"
#include "galvani/model/inputs.h"
#include "galvani/model/label_fit.h"

namespace galvani {
namespace {

constexpr std::int64_t kMicroBatchesPerChunk = 16;

}  // namespace

Seeds choose_seeds(Network& network, const Dataset& data, const CampaignSettings& settings) {
  const std::int64_t count = settings.seeds;
  const bool keep_wrong = settings.wrong_seeds == "keep";
  if (data.size() == 0) bad_input("{}: has no inputs", data.name);
  const auto* labels = data.labels.data_ptr<std::int64_t>();
  check_labels(network, data);
  std::vector<std::int64_t> order;
  for (std::int64_t item : Rng(settings.seed).derive("seeds").sample(data.size(), data.size())) {
    if (labels[item] >= 0) order.push_back(item);
  }
  if (order.empty())
    bad_input(
        "{}: has no labels, so it cannot be known which inputs the model gets right; --labels model takes its own "
        "verdicts",
        data.name);
  Seeds seeds;
  std::int64_t chunk = network.execution().micro_batch * kMicroBatchesPerChunk;
  Progress progress("choosing seeds", count, "seeds");
  for (std::size_t first = 0; first < order.size() && static_cast<std::int64_t>(seeds.records.size()) < count;) {
    check_interrupt();
    std::size_t end = std::min(order.size(), first + static_cast<std::size_t>(chunk));
    at::Tensor rows = at::empty({static_cast<std::int64_t>(end - first)}, at::kLong);
    std::copy(order.begin() + static_cast<std::ptrdiff_t>(first), order.begin() + static_cast<std::ptrdiff_t>(end),
              rows.data_ptr<std::int64_t>());
    at::Tensor references = stated_references(network, data);
    if (references.defined()) references = references.index_select(0, rows);
    Predictions said = predict(network, data.images.index_select(0, rows), references);
    std::size_t before = seeds.records.size();
    for (std::size_t i = first; i < end && static_cast<std::int64_t>(seeds.records.size()) < count; ++i) {
      std::int64_t item = order[i];
      std::int64_t predicted = said.labels.data_ptr<std::int64_t>()[i - first];
      auto sure = static_cast<double>(said.confidence.data_ptr<float>()[i - first]);
      bool right = predicted == labels[item];
      std::string source = data.files.empty() ? "" : data.files[static_cast<std::size_t>(item)];
      if (right || keep_wrong) {
        seeds.records.push_back({static_cast<std::int64_t>(seeds.records.size()) + 1,
                                 item,
                                 labels[item],
                                 sure,
                                 0,
                                 0,
                                 {},
                                 source,
                                 references.defined() ? reference_text(data.answers[item]) : std::string()});
        seeds.images.push_back(data.images[item].clone());
      }
      if (!right) seeds.wrong.push_back({item, labels[item], predicted, sure, source});
    }
    progress.advance(static_cast<std::int64_t>(seeds.records.size() - before));
    first = end;
  }
  if (seeds.records.empty() && network.info().question.by_reference())
    bad_input(
        "{}: the model gets none of its inputs right: every answer is farther from what is right than the "
        "tolerance, or has another label",
        data.name);
  if (seeds.records.empty()) {
    std::vector<std::int64_t> truth, said;
    for (const WrongSeedRecord& wrong : seeds.wrong) {
      truth.push_back(wrong.label);
      said.push_back(wrong.predicted);
    }
    if (auto fit = fit_labels(at::tensor(truth), at::tensor(said), network.info().classes))
      bad_input("{}: the model gets none of its inputs right, but {}", data.name, remedy_text(*fit, data.class_names));
    bad_input("{}: the model gets none of its inputs right; the first suspect is preprocessing ({})", data.name,
              network.card().preprocess.str());
  }
  std::sort(seeds.wrong.begin(), seeds.wrong.end(),
            [](const WrongSeedRecord& a, const WrongSeedRecord& b) { return a.item < b.item; });
  return seeds;
}

namespace {

// A resumed campaign uses them as indices and sizes; rows that were changed would end the process.
void expect_sound_beginning(const CampaignReader& reader) {
  const std::filesystem::path& folder = reader.folder();
  std::string file = (folder / "campaign.db").string();
  Database database(file, Database::Mode::read);
  check_schema(database, file);
  Beginning beginning = read_beginning(database, file);
  expect_chain(database, folder, 0, chain_value(beginning));
  std::int64_t classes = reader.record().classes;
  auto known = [&](const NewSeed& seed) { return seed.record.label >= 0 && seed.record.label < classes; };
  if (beginning.seeds.empty() || static_cast<std::int64_t>(beginning.classes.size()) != classes ||
      !std::all_of(beginning.seeds.begin(), beginning.seeds.end(), known))
    refuse_damaged(folder, fmt::format("{}: its seeds and classes are not those of a campaign", file));
}

}  // namespace

Seeds stored_seeds(const std::filesystem::path& folder, std::vector<std::string>& class_names) {
  std::string bytes = made_by_first([&] {
    CampaignReader reader(folder);
    expect_sound_beginning(reader);
    std::vector<SeedRecord> records = reader.seeds();
    ArchiveWriter out;
    out.put(reader.type().str());
    out.put(static_cast<std::uint64_t>(records.size()));
    for (const SeedRecord& seed : records) {
      put_fields(out, seed);
      at::Tensor image = reader.image(seed.id).contiguous();
      out.put(std::string_view(static_cast<const char*>(image.data_ptr()), image.nbytes()));
    }
    for (const YieldRecord& yield : reader.by_class()) out.put(yield.name);
    return out.bytes();
  });
  Seeds seeds;
  ArchiveReader in(bytes, folder.string());
  SampleType type = SampleType::parse(in.get_text(), folder.string());
  seeds.records.resize(in.get<std::uint64_t>());
  for (SeedRecord& seed : seeds.records) {
    get_fields(in, seed);
    std::string values = in.get_text(type.bytes());
    seeds.images.push_back(at::empty(type.shape, type.dtype()));
    if (values.size() != type.bytes()) in.broken("holds a seed of another size");
    std::memcpy(seeds.images.back().data_ptr(), values.data(), values.size());
  }
  while (!in.rest().empty()) class_names.push_back(in.get_text());
  return seeds;
}

std::vector<std::string> class_names(const Network& network, const Dataset& data) {
  if (network.info().question.by_reference()) return network.info().question.verdict_names();
  std::vector<std::string> names = network.card().class_names;
  names.resize(static_cast<std::size_t>(network.info().classes));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) names[i] = data.class_name(static_cast<std::int64_t>(i));
  }
  return names;
}

}  // namespace galvani
