// LibTorch divides whole numbers without looking: by zero, or the least of them by minus one, which ends the process.
#pragma once

namespace torch::jit {
struct Graph;
}

namespace galvani {

// Replaces division and remainder of whole numbers by operators that throw instead.
void guard_integers(torch::jit::Graph& graph);

}  // namespace galvani
