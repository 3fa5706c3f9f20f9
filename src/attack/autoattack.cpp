// AutoAttack (Croce and Hein 2020): four attacks that fail in different ways, each on what the others left standing.
#include <ATen/ATen.h>

#include "attack/builtin.h"
#include "attack/ensemble.h"

namespace galvani {
namespace {

class AutoAttack : public Attack {
 public:
  explicit AutoAttack(const Options& options)
      : Attack(norm_of(options), options.real("eps")),
        steps_(options.integer("steps")),
        queries_(options.integer("queries")),
        classes_(options.integer("classes")) {}

 private:
  void run(Search& search) const override {
    ApgdSettings apgd;
    apgd.steps = steps_;
    search_apgd(search, apgd);
    apgd.loss = ApgdLoss::dlr_targeted;
    apgd.classes = classes_;
    search_apgd(search, apgd);
    FabSettings fab;
    fab.steps = steps_;
    fab.classes = classes_;
    search_fab(search, fab);
    SquareSettings square;
    square.queries = queries_;
    search_square(search, square);
  }

  std::int64_t steps_;
  std::int64_t queries_;
  std::int64_t classes_;
};

}  // namespace

AttackEntry auto_entry() {
  return {"auto",
          "AutoAttack: apgd with ce and dlr-t, fab, square, one after the other (Croce and Hein 2020)",
          {eps_option(),
           norm_option(),
           {"steps", std::int64_t{100}, "steps of apgd and fab", 1.0, 1e6, {}},
           {"queries", std::int64_t{5000}, "queries of square", 1.0, 1e8, {}},
           {"classes", std::int64_t{9}, "other classes that apgd and fab try", 1.0, 1e6, {}}},
          [](const Options& options) -> std::unique_ptr<Attack> { return std::make_unique<AutoAttack>(options); }};
}

}  // namespace galvani
