// What worker tasks of several processes have made, brought together (galvani/base/crew.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "galvani/base/crew.h"

namespace galvani {

// Task t has filled pieces [t * per_task, (t + 1) * per_task) with tensors of any shape and number; afterwards all
// pieces are filled.
void share_pieces(const CrewWork& work, std::vector<std::vector<at::Tensor>>& pieces, std::size_t per_task);

}  // namespace galvani
