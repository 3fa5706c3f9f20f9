// The verbs of the command line as calls: the same options, checks, defaults and results, in this process.
#include <ATen/ATen.h>
#include <pybind11/stl.h>

#include "convert.h"
#include "galvani/base/error.h"
#include "galvani/base/parallel.h"
#include "model_flags.h"
#include "verb.h"

namespace galvani::python {
namespace {

// A verb may be told a number of threads; the next one starts from what there was.
class KeptThreads {
 public:
  KeptThreads() = default;
  ~KeptThreads() {
    if (workers().size() != before_) set_workers(before_);
  }
  KeptThreads(const KeptThreads&) = delete;
  KeptThreads& operator=(const KeptThreads&) = delete;

 private:
  int before_ = workers().size();
};

// `words` are a verb and its options as one would type them. (document, columns by name).
py::tuple call_verb(std::vector<std::string> words, const std::vector<std::shared_ptr<Network>>& networks,
                    const py::object& on_event) {
  Json document;
  cli::ResultArrays columns;
  cli::ResultTaker taker;
  taker.result = [&](const Json& found, const cli::ResultArrays& arrays) {
    document = found;
    columns = arrays;
  };
  taker.news = [&](const Json& news) {
    Callback callback;
    on_event(to_python(news));
  };
  cli::Common common;
  common.json = true;
  common.json_lines = !on_event.is_none();
  common.taker = &taker;
  {
    Work work;
    KeptThreads threads;
    std::vector<std::unique_ptr<cli::LentNetwork>> lent;
    for (const auto& network : networks) lent.push_back(std::make_unique<cli::LentNetwork>(network));
    cli::Verb app("galvani", "", "");
    app.need_verb();
    cli::add_verbs(app, common);
    words.insert(words.begin(), "galvani");
    std::vector<char*> argv;
    argv.reserve(words.size());
    for (std::string& word : words) argv.push_back(word.data());
    app.parse(static_cast<int>(argv.size()), argv.data());
  }
  py::dict arrays;
  for (const auto& [name, values] : columns) arrays[py::str(name)] = to_array(values);
  return py::make_tuple(to_python(document), arrays);
}

}  // namespace

void bind_verbs(py::module_& module) {
  module.def("call_verb", call_verb);
}

}  // namespace galvani::python
