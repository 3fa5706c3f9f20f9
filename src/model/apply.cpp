// Graphs run for what they give, whatever that is: encoders, generators.
#include <fmt/format.h>
#include <torch/script.h>

#include <algorithm>
#include <numeric>

#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/text.h"
#include "model/network_impl.h"
#include "model/packed.h"
#include "model/random_layers.h"

namespace galvani {

void Network::Impl::describe_outputs(const at::Tensor& images, const at::Tensor& scores) {
  std::vector<at::Tensor> values;
  if (scores.defined() && executor->outputs() == 1)
    values.push_back(scores);
  else
    values = executor->output_plan(/*random=*/false)->run(prepare(images, {}), {});
  info.outputs.clear();
  kept_outputs.clear();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].dim() < 1 || values[i].size(0) != images.size(0)) continue;
    std::string name = i < output_names.size() ? output_names[i] : "output" + std::to_string(i);
    info.outputs.push_back({name, values[i].sizes().slice(1).vec()});
    kept_outputs.push_back(i);
  }
  if (kept_outputs.empty())
    bad_input("{}: its output '{}' has the shape {} for {}, not one value for each", info.path,
              output_names.empty() ? "output0" : printable(output_names[0]),
              fmt::format("{}", fmt::join(values[0].sizes(), "x")), counted(images.size(0), "input"));
}

std::vector<at::Tensor> Network::apply(const at::Tensor& images, const Application& how) {
  Impl& impl = *impl_;
  if (!impl.any_output) fail(ErrorCode::internal, "{}: was not loaded for any output", impl.info.path);
  check_inputs(*this, images);
  Execution form = execution_of(*this, how.alone);
  if (crew() != nullptr) impl.check_crew(execution());
  std::vector<std::size_t> wanted = how.outputs;
  if (wanted.empty()) {
    wanted.resize(impl.info.outputs.size());
    std::iota(wanted.begin(), wanted.end(), std::size_t{0});
  }
  std::vector<std::size_t> places;
  for (std::size_t output : wanted) places.push_back(impl.kept_outputs.at(output));
  std::shared_ptr<const Plan> plan = impl.executor->output_plan(how.random.has_value(), places);
  RandomLayers random = how.random.value_or(RandomLayers());
  std::int64_t n = images.size(0);
  std::int64_t micro = form.micro_batch;
  std::vector<std::vector<at::Tensor>> pieces(static_cast<std::size_t>((n + micro - 1) / micro));
  try {
    CrewWork work(static_cast<std::int64_t>(pieces.size()));
    work.run([&](std::int64_t piece, int) {
      c10::InferenceMode inference;
      std::int64_t first = piece * micro;
      std::int64_t count = std::min(micro, n - first);
      RandomScope draws(random, first, micro);
      std::vector<at::Tensor> values = plan->run(impl.prepare(padded_rows(images, first, count, micro), form), {});
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const at::Tensor& value = values[i];
        std::vector<std::int64_t> shape = impl.info.outputs[wanted[i]].shape;
        shape.insert(shape.begin(), micro);
        if (value.sizes() != at::IntArrayRef(shape))
          bad_input("{}: the shape of its results depends on the images, which is not supported", impl.info.path);
        pieces[static_cast<std::size_t>(piece)].push_back(value.narrow(0, 0, count).contiguous());
      }
    });
    if (work.cut()) share_pieces(work, pieces, 1);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    bad_input("{}: fails while running: {}", impl.info.path, impl.executor->explain(e));
  }
  std::vector<at::Tensor> result;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::vector<at::Tensor> of_all;
    for (const auto& piece : pieces) of_all.push_back(piece[i]);
    std::vector<std::int64_t> none = impl.info.outputs[wanted[i]].shape;
    none.insert(none.begin(), 0);
    result.push_back(of_all.empty() ? at::empty(none) : at::cat(of_all));
  }
  return result;
}

}  // namespace galvani
