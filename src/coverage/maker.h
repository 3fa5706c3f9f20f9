// Gives a criterion its name and spec once it is made.
#pragma once

#include <memory>

#include "galvani/coverage/criterion.h"

namespace galvani {

class CriterionMaker {
 public:
  static std::unique_ptr<Criterion> make(const Spec& spec, const CriterionContext& context);
};

}  // namespace galvani
