#include "galvani/semantics/describer.h"

#include <algorithm>

#include "galvani/base/error.h"
#include "semantics/describers.h"

namespace galvani {

const DescriberRegistry& describers() {
  static const DescriberRegistry registry("describer", {dissect_entry(), formula_entry(), captioner_entry()});
  return registry;
}

std::unique_ptr<Describer> make_describer(const Spec& spec) {
  std::unique_ptr<Describer> describer = describers().create(spec);
  describer->id_ = spec.name;
  describer->spec_ = describers().options(spec).str();
  return describer;
}

std::vector<std::vector<NeuronWords>> Describer::describe(const DescribeTask& task) {
  if (task.exemplars.model != task.network.identity())
    bad_usage("{}: the exemplars are of another model", task.network.info().path);
  std::vector<std::vector<NeuronWords>> result = run(task);
  bool fits = result.size() == task.exemplars.layers.size();
  for (std::size_t layer = 0; fits && layer < result.size(); ++layer)
    fits = static_cast<std::int64_t>(result[layer].size()) == task.exemplars.layers[layer].neurons;
  if (!fits) fail(ErrorCode::internal, "describer '{}' left neurons without words", id_);
  return result;
}

NeuronWords never_active() {
  NeuronWords words;
  words.words = "nothing (never active)";
  words.sure = true;
  words.p = 0;
  return words;
}

std::vector<int> taps_of(const Network& network, const Exemplars& exemplars) {
  std::vector<int> result;
  for (const ExemplarLayer& layer : exemplars.layers) {
    auto found = std::find_if(network.taps().begin(), network.taps().end(),
                              [&](const Tap& tap) { return tap.name == layer.tap && tap.neurons() == layer.neurons; });
    if (found == network.taps().end())
      bad_input("the exemplars are of a layer '{}' that the model does not have", printable(layer.tap));
    result.push_back(static_cast<int>(found - network.taps().begin()));
  }
  return result;
}

}  // namespace galvani
