// Whether all processes of a job compute the same.
#include <ATen/ATen.h>

#include <algorithm>

#include "galvani/base/archive.h"
#include "galvani/base/crew.h"
#include "model/network_impl.h"

namespace galvani {

void Network::Impl::check_crew(const Execution& form) {
  if (crew_checked) return;
  crew_checked = true;
  ArchiveWriter found;
  // Passes with gradients are not fused; kernels differ with the shape of a micro-batch.
  Execution plain = form;
  plain.fused = false;
  Execution alone{std::max<std::int64_t>(1, info.fixed_batch), false};
  for (const Execution& one : {form, plain, alone}) {
    try {
      c10::InferenceMode inference;
      std::shared_ptr<const Plan> plan = any_output
                                             ? executor->output_plan(/*random=*/false)
                                             : executor->plan({{}, {}, Executor::Form::whole_final, {}, one.fused});
      for (const at::Tensor& value : plan->run(prepare(probe_images(one.micro_batch, info.input), one), {})) {
        at::Tensor dense = value.contiguous();
        found.put(std::string_view(static_cast<const char*>(dense.data_ptr()), dense.nbytes()));
      }
    } catch (const std::exception& e) {
      found.put(executor->explain(e));  // in one process alone it is a difference, too
    }
  }
  check_crew_agrees(found.bytes(), info.path + ": what the network computes");
}

}  // namespace galvani
