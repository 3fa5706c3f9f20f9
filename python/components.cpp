// Guides, selectors and generators written in Python, in the same registries as ours. Each is an adapter object of
// galvani/components.py; every call is for a whole batch and takes the GIL once.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <pybind11/stl.h>

#include "convert.h"
#include "galvani/base/error.h"
#include "galvani/fuzz/guide.h"
#include "galvani/generate/generator.h"
#include "galvani/select/selector.h"

namespace galvani::python {
namespace {

// A Python object that is used and let go of from any thread.
class Adapter {
 public:
  explicit Adapter(py::object object) : object_(new py::object(std::move(object))) {}
  ~Adapter() {
    if (Py_IsInitialized() == 0) return;
    py::gil_scoped_acquire acquired;
    delete object_;
  }
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  // REQUIRES the GIL.
  template <class... Args>
  py::object call(const char* method, Args&&... args) const {
    return object_->attr(method)(std::forward<Args>(args)...);
  }

 private:
  py::object* object_;
};

OptionSchema schema_of(const py::list& options) {
  OptionSchema schema;
  for (const py::handle& item : options) {
    auto option = item.cast<py::tuple>();
    OptionInfo info;
    info.name = option[0].cast<std::string>();
    py::object value = option[1];
    if (py::isinstance<py::bool_>(value)) {
      info.fallback = value.cast<bool>();
    } else if (py::isinstance<py::int_>(value)) {
      info.fallback = value.cast<std::int64_t>();
    } else if (py::isinstance<py::float_>(value)) {
      info.fallback = value.cast<double>();
    } else if (py::isinstance<py::str>(value)) {
      info.fallback = value.cast<std::string>();
    } else {
      bad_usage("the default of option {} must be a bool, int, float or str", info.name);
    }
    schema.push_back(std::move(info));
  }
  return schema;
}

// `make` is called with the values of the options by name, and makes the adapter.
std::shared_ptr<Adapter> make_adapter(const std::shared_ptr<Adapter>& make, const Options& options) {
  py::dict given;
  for (const auto& [name, value] : options.values()) {
    std::visit([&, &key = name](const auto& held) { given[py::str(key)] = py::cast(held); }, value);
  }
  return std::make_shared<Adapter>(make->call("make", given));
}

// A column of numbers that an adapter gave, one for every row.
at::Tensor column(const py::object& given, std::int64_t n, const char* what) {
  at::Tensor values = to_tensor(given.cast<py::array>(), what);
  if (values.dim() != 1 || values.size(0) != n) bad_usage("{}: must be one number for each of {} rows", what, n);
  return values.to(at::kDouble).contiguous();
}

class PythonGuide : public Guide {
 public:
  explicit PythonGuide(std::shared_ptr<Adapter> adapter) : adapter_(std::move(adapter)) {
    auto wanted = adapter_->call("needs").cast<std::pair<bool, bool>>();
    needs_.traces = wanted.first;
    needs_.more.relevance = wanted.second;
  }

  GuideNeeds needs() const override { return needs_; }
  Covered covered() const override {
    Callback callback;
    auto amount = adapter_->call("covered").cast<std::pair<double, double>>();
    return {amount.first, amount.second};
  }
  bool full() const override {
    Covered amount = covered();
    return amount.total > 0 && amount.covered >= amount.total;
  }

 private:
  static py::dict rows(const Judged& judged) {
    py::dict result;
    result["images"] = to_array(judged.images);
    result["logits"] = to_array(judged.logits);
    result["predicted"] = to_array(judged.predicted);
    result["traces"] = to_array(judged.traces.values);
    result["relevance"] = to_array(judged.traces.relevance);
    result["labels"] = py::array_t<std::int64_t>(static_cast<py::ssize_t>(judged.labels.size()), judged.labels.data());
    result["parents"] =
        py::array_t<std::int64_t>(static_cast<py::ssize_t>(judged.parents.size()), judged.parents.data());
    result["seeds"] = py::array_t<std::int64_t>(static_cast<py::ssize_t>(judged.seeds.size()), judged.seeds.data());
    result["iterations"] =
        py::array_t<std::int64_t>(static_cast<py::ssize_t>(judged.iterations.size()), judged.iterations.data());
    return result;
  }

  void run_absorb(const Judged& seeds, std::vector<double>& gains) override {
    Callback callback;
    at::Tensor found = column(adapter_->call("absorb", rows(seeds)), seeds.size(), "what a guide's absorb returns");
    std::copy_n(found.data_ptr<double>(), gains.size(), gains.begin());
  }
  void run(const Judged& mutants, std::vector<Decision>& decisions) override {
    Callback callback;
    at::Tensor found = column(adapter_->call("decide", rows(mutants)), mutants.size(), "what a guide's decide returns");
    const double* gains = found.data_ptr<double>();
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      decisions[i].keep = gains[i] > 0;
      decisions[i].gain = gains[i];
    }
  }
  void run_reset() override {
    Callback callback;
    adapter_->call("reset");
  }
  void run_merge(const Guide& other) override {
    const auto* guide = dynamic_cast<const PythonGuide*>(&other);
    if (guide == nullptr) fail(ErrorCode::internal, "two guides of one name are of different kinds");
    Callback callback;
    adapter_->call("merge", guide->adapter_->call("itself"));
  }
  void run_save(ArchiveWriter& out) const override {
    Callback callback;
    out.put(adapter_->call("save").cast<std::string>());
  }
  void run_load(ArchiveReader& in) override {
    constexpr std::size_t kMostState = std::size_t{1} << 32;
    std::string state = in.get_text(kMostState);
    Callback callback;
    adapter_->call("load", py::bytes(state));
  }

  std::shared_ptr<Adapter> adapter_;
  GuideNeeds needs_;
};

class PythonSelector : public Selector {
 public:
  PythonSelector(std::shared_ptr<Adapter> adapter, const SelectContext& context) : adapter_(std::move(adapter)) {
    auto wanted = adapter_->call("needs").cast<py::dict>();
    needs_.traces = wanted["traces"].cast<bool>();
    needs_.training = wanted["training"].cast<bool>();
    for (const auto& layer : wanted["features"].cast<std::vector<std::string>>())
      needs_.features.push_back(feature_of(context.network, layer));
  }

  SelectorNeeds needs() const override { return needs_; }

 private:
  static py::dict rows(const at::Tensor& inputs, const Seen& seen) {
    py::dict result;
    result["images"] = to_array(inputs);
    result["logits"] = to_array(seen.logits);
    result["probabilities"] = to_array(seen.probabilities);
    result["predicted"] = to_array(seen.predicted);
    result["traces"] = to_array(seen.traces.values);
    py::list features;
    for (const at::Tensor& feature : seen.features) features.append(to_array(feature));
    result["features"] = features;
    return result;
  }

  void run_train(const TrainingPart& part) override {
    Callback callback;
    py::dict given = rows(part.inputs, part.seen);
    given["labels"] = to_array(part.labels);
    adapter_->call("train", given);
  }
  void run(const PoolPart& part, double* scores) override {
    Callback callback;
    at::Tensor found = column(adapter_->call("score", rows(part.inputs, part.seen)), part.inputs.size(0),
                              "what a selector's score returns");
    std::copy_n(found.data_ptr<double>(), found.size(0), scores);
  }

  std::shared_ptr<Adapter> adapter_;
  SelectorNeeds needs_;
};

// Candidates of some rows, each made from its parent, its seed and a number that was drawn for it.
at::Tensor candidates_of(const Adapter& adapter, const at::Tensor& parents, const at::Tensor& seeds,
                         const std::vector<std::int64_t>& draws) {
  Callback callback;
  py::array_t<std::int64_t> drawn(static_cast<py::ssize_t>(draws.size()), draws.data());
  at::Tensor made = to_tensor(adapter.call("generate", to_array(parents), to_array(seeds), drawn).cast<py::array>(),
                              "what a generator returns");
  bool type = made.scalar_type() == parents.scalar_type() || made.scalar_type() == at::kFloat;
  if (made.sizes() != parents.sizes() || !type)
    bad_usage("what a generator returns must have the shape of the inputs it was given, and their type or float32");
  // What Python does with its array afterwards is its own business.
  return made.clone(at::MemoryFormat::Contiguous);
}

constexpr const char* kDraw = "draw";

class PythonProposal : public Proposal {
 public:
  PythonProposal(const Generator& owner, std::shared_ptr<Adapter> adapter, std::vector<PickedParent> parents,
                 const PickOrder& order)
      : Proposal(owner, std::move(parents), order), adapter_(std::move(adapter)) {}

 private:
  Candidates run(std::int64_t most) override {
    Candidates result;
    result.each = due(most);
    draws_.clear();
    if (result.each.empty()) return result;
    std::vector<at::Tensor> inputs, seeds;
    for (Candidate& candidate : result.each) {
      const PickedParent& parent = parents()[candidate.parent];
      candidate.kind = 0;
      candidate.valid = true;
      draws_.push_back(static_cast<std::int64_t>(parent.stream(candidate.slot).next_u64() >> 1));
      inputs.push_back(parent.input);
      seeds.push_back(parent.seed);
    }
    at::Tensor from = at::stack(inputs);
    result.inputs = candidates_of(*adapter_, from, at::stack(seeds), draws_);
    at::Tensor changed = result.inputs.ne(from).flatten(1).any(1);
    for (std::size_t i = 0; i < result.each.size(); ++i) result.each[i].valid = changed.data_ptr<bool>()[i];
    return result;
  }
  std::string run_provenance(std::size_t row) const override {
    return fmt::format("{}:{}={}", generator().id(), kDraw, draws_[row]);
  }

  std::shared_ptr<Adapter> adapter_;
  std::vector<std::int64_t> draws_;
};

class PythonGenerator : public Generator {
 public:
  explicit PythonGenerator(std::shared_ptr<Adapter> adapter) : adapter_(std::move(adapter)) {}

 private:
  std::unique_ptr<Proposal> run_begin(std::vector<PickedParent> parents, const PickOrder& order) const override {
    return std::make_unique<PythonProposal>(*this, adapter_, std::move(parents), order);
  }
  at::Tensor run_make(const std::string& provenance, const at::Tensor& parent, const at::Tensor& seed) const override {
    static const OptionSchema schema = {{kDraw, std::int64_t{0}, "the number it was made with", 0.0, {}, {}}};
    Spec spec = Spec::parse(provenance);
    if (spec.name != id()) bad_usage("'{}' is not a step of the generator {}", printable(provenance), id());
    std::int64_t draw = Options(id(), schema, spec).integer(kDraw);
    at::Tensor made = candidates_of(*adapter_, parent.unsqueeze(0), seed.unsqueeze(0), {draw})[0];
    if (made.scalar_type() == parent.scalar_type()) return made;
    bool bytes = parent.scalar_type() == at::kByte;
    return made.round().clamp(bytes ? 0 : -32768, bytes ? 255 : 32767).to(parent.scalar_type());
  }

  std::shared_ptr<Adapter> adapter_;
};

template <class Registry, class Make>
void add_to(Registry& registry, const std::string& name, const std::string& help, const py::list& options,
            const py::object& factory, const Make& make) {
  bool good = !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (!good) bad_usage("'{}' is no name for a component: use small letters, digits and '-'", printable(name));
  typename Registry::Entry entry{name, help, schema_of(options), {}};
  entry.make = [made = std::make_shared<Adapter>(factory), make](const Options& given, const auto& context) {
    Callback callback;
    return make(make_adapter(made, given), context);
  };
  Work work;
  registry.add(std::move(entry));
}

}  // namespace

void bind_components(py::module_& module) {
  module.def("add_guide",
             [](const std::string& name, const std::string& help, const py::list& options, const py::object& factory) {
               add_to(guides(), name, help, options, factory,
                      [](std::shared_ptr<Adapter> adapter, const GuideContext&) -> std::unique_ptr<Guide> {
                        return std::make_unique<PythonGuide>(std::move(adapter));
                      });
             });
  module.def("add_selector",
             [](const std::string& name, const std::string& help, const py::list& options, const py::object& factory) {
               add_to(selectors(), name, help, options, factory,
                      [](std::shared_ptr<Adapter> adapter, const SelectContext& context) -> std::unique_ptr<Selector> {
                        return std::make_unique<PythonSelector>(std::move(adapter), context);
                      });
             });
  module.def("add_generator",
             [](const std::string& name, const std::string& help, const py::list& options, const py::object& factory) {
               add_to(generators(), name, help, options, factory,
                      [](std::shared_ptr<Adapter> adapter, const GeneratorContext&) -> std::unique_ptr<Generator> {
                        return std::make_unique<PythonGenerator>(std::move(adapter));
                      });
             });
}

}  // namespace galvani::python
