// Exemplars in a file: numbers as they are, maps as halves, pictures as the files they are.
#include <ATen/ATen.h>

#include "galvani/base/archive.h"
#include "galvani/base/error.h"
#include "galvani/semantics/exemplars.h"

namespace galvani {
namespace {

constexpr const char* kExemplarKind = "exemplars";
constexpr std::uint32_t kExemplarVersion = 1;
constexpr std::int64_t kMostSide = 65536;

void put_layer(ArchiveWriter& out, const ExemplarLayer& layer) {
  out.put(layer.tap);
  out.put(static_cast<std::int32_t>(layer.kind));
  for (std::int64_t n : {layer.neurons, layer.height, layer.width}) out.put(n);
  out.put(layer.threshold);
  out.put(layer.above);
  out.put(layer.least);
  out.put(layer.largest);
  out.put(layer.rows);
  out.put(layer.peaks);
  at::Tensor maps = layer.maps.contiguous();
  out.put(std::string_view(static_cast<const char*>(maps.data_ptr()), maps.nbytes()));
}

ExemplarLayer get_layer(ArchiveReader& in, std::int64_t count) {
  ExemplarLayer layer;
  layer.tap = in.get_text();
  layer.kind = static_cast<TapKind>(in.get<std::int32_t>());
  for (std::int64_t* n : {&layer.neurons, &layer.height, &layer.width}) {
    *n = in.get<std::int64_t>();
    if (*n < 1 || *n > kMostSide) in.broken("has a layer of an impossible size");
  }
  auto neurons = static_cast<std::uint64_t>(layer.neurons);
  auto places = neurons * static_cast<std::uint64_t>(count);
  layer.threshold = in.get_vector<float>(neurons);
  layer.above = in.get_vector<double>(neurons);
  layer.least = in.get_vector<float>(neurons);
  layer.largest = in.get_vector<float>(neurons);
  layer.rows = in.get_vector<std::int64_t>(places);
  layer.peaks = in.get_vector<float>(places);
  std::uint64_t bytes = places * static_cast<std::uint64_t>(layer.height * layer.width) * 2;
  std::string maps = in.get_text(bytes);
  if (maps.size() != bytes) in.broken("holds maps of the wrong size");
  layer.maps = at::empty({layer.neurons, count, layer.height, layer.width}, at::kHalf);
  std::memcpy(layer.maps.data_ptr(), maps.data(), maps.size());
  return layer;
}

}  // namespace

void Exemplars::save(const std::filesystem::path& path) const {
  ArchiveWriter out;
  out.put(model);
  out.put(data);
  out.put(type.str());
  out.put(inputs);
  out.put(hurt);
  out.put(options.count);
  out.put(options.quantile);
  out.put(static_cast<std::uint64_t>(layers.size()));
  for (const ExemplarLayer& layer : layers) put_layer(out, layer);
  out.put(pictured);
  for (std::int64_t i = 0; i < images.size(0); ++i) out.put(type.encode(images[i]));
  write_sealed(path, kExemplarKind, kExemplarVersion, out.bytes());
}

Exemplars Exemplars::load(const std::filesystem::path& path, const Network& network) {
  std::string payload = read_sealed(path, kExemplarKind, kExemplarVersion);
  ArchiveReader in(payload, path.string());
  Exemplars result;
  result.model = in.get_text();
  if (result.model != network.identity())
    bad_input("{}: holds exemplars of another model than {}; make them anew", path.string(), network.info().path);
  result.data = in.get_text();
  result.type = SampleType::parse(in.get_text(), path.string());
  result.inputs = in.get<std::int64_t>();
  result.hurt = in.get<std::int64_t>();
  result.options.count = in.get<std::int64_t>();
  result.options.quantile = in.get<double>();
  if (result.options.count < 1 || result.options.count > kMostSide) in.broken("has an impossible number of exemplars");
  auto count = in.get<std::uint64_t>();
  if (count > network.taps().size()) in.broken("has more layers than the model");
  for (std::uint64_t i = 0; i < count; ++i) result.layers.push_back(get_layer(in, result.options.count));
  result.pictured = in.get_vector<std::int64_t>();
  std::vector<at::Tensor> images;
  for (std::size_t i = 0; i < result.pictured.size(); ++i) {
    constexpr std::size_t kMostPicture = std::size_t{1} << 30;
    images.push_back(result.type.decode(in.get_text(kMostPicture), path.string()));
  }
  in.expect_end();
  result.images = images.empty() ? at::empty(result.type.batch(0), result.type.dtype()) : at::stack(images);
  return result;
}

}  // namespace galvani
