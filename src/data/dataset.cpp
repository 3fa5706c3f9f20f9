#include "galvani/data/dataset.h"

namespace galvani {

bool Dataset::labelled() const { return labels.defined() && size() > 0 && labels.min().item<std::int64_t>() >= 0; }

}  // namespace galvani
