#include "fuzz/probe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/base/archive.h"
#include "galvani/base/crew.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"

namespace galvani {
namespace {

constexpr std::int64_t kAlone = 4;  // seeds in canonical form

void put(ArchiveWriter& out, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  at::Tensor dense = tensor.contiguous();
  out.put(std::string_view(static_cast<const char*>(dense.data_ptr()), dense.nbytes()));
}

std::string probe_model(const BatchRunner& runner, Network& network, Guide& fresh, Corpus& corpus) {
  Judged judged = runner.judge_seeds(corpus, 1, std::min(network.execution().micro_batch, corpus.size()));
  ArchiveWriter out;
  put(out, judged.logits);
  put(out, confidences_of(network, judged));
  put(out, judged.traces.values);
  put(out, judged.traces.relevance);
  for (const LayerTrace& layer : judged.traces.layers) {
    put(out, layer.features);
    put(out, layer.windows);
  }
  Request alone;
  alone.alone = true;
  alone.answers = network.info().question.by_reference();
  Outputs outputs = network.run(judged.images.narrow(0, 0, std::min(kAlone, judged.size())), alone);
  put(out, alone.answers ? outputs.answers : outputs.logits);
  if (fresh.needs().traces) out.put(fresh.absorb(judged));
  out.put(fresh.covered().covered);
  return sha256(out.bytes());
}

}  // namespace

Probe take_probe(const BatchRunner& runner, Network& network, Guide& fresh, Corpus& corpus,
                 const Generator& generator) {
  Probe probe;
  {
    // Cut over a crew and shared, it would say what one of its processes computes.
    WorkAlone alone;
    probe = {probe_model(runner, network, fresh, corpus), generator.probe(corpus.image(1))};
  }
  check_crew_agrees(probe.model, "what the network and the guide compute");
  check_crew_agrees(probe.generator, "what the generator makes");
  return probe;
}

void check_probe(const Probe& then, const Probe& now, const std::string& folder) {
  const char* what = then.model != now.model           ? "the network"
                     : then.generator != now.generator ? "the generator"
                                                       : nullptr;
  if (what == nullptr) return;
  fail(
      ErrorCode::environment,
      "{}: {} computes other values here than when the campaign began, so it cannot be gone on with; likely causes are "
      "another processor, environment variables that choose its instructions (ONEDNN_MAX_CPU_ISA, ATEN_CPU_CAPABILITY, "
      "OPENBLAS_CORETYPE), or other versions of the libraries",
      folder, what);
}

}  // namespace galvani
